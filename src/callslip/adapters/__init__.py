"""callslip inside agent frameworks, one module for each.

What may live here: for each framework `x` a module `x.py` and, where it grows, helpers named
`x_*.py`, of at most 150 lines each. Only they import the framework; importing one without it
installed is an ImportError that says so. An adapter adds no policy of its own: it offloads once,
when a result arrives, and sweeps idempotently for what arrives another way.
"""
