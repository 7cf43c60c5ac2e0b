"""The stacks: where everything that is not in the window lives.

What may live here: values into exact bytes and back (`content`, `exact`, `records`), the packed
format (`payload`), the operations on a store (`ops`) with their drivers (`drive`), and the flows
made of them. All of that is pure: only `index/` and `payloads.py` do I/O.
"""
