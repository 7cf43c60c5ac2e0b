"""The index: rows, sessions, references, retention. One module for each database.

What may live here: backends that run the index operations of `callslip.stacks.ops`, with their
schema and migrations. They do I/O and decide nothing: a rule that two databases would share belongs
in a flow, not here. `callslip.testing` has the contract that each of them passes.
"""
