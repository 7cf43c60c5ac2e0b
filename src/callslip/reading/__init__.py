"""Reading: the slice that comes back, capped.

What may live here: flows that turn stored chunks into one capped reply (a page, the hits of a
search). No I/O of their own and no framework.
"""
