"""The window: what the model sees.

What may live here: pure functions from values to text, and the choice of what goes into it
(`measure`, `policy`, `preview`, `envelope`, `inert`). No I/O, no clock, no random, no framework; of
the stacks only the plain values in `callslip.stacks.ops`.
"""
