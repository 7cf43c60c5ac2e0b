"""What an agent keeps outside of its window besides results: plans, state, sub-tasks.

What may live here: the patterns without a framework, over a `Session`. They know no model and no
graph; `callslip.adapters` binds them to one.
"""
