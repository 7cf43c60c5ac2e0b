"""What helps to test a backend, or an agent, against this library. Shipped with it.

What may live here: contract suites that a new index or payload store is held to, stand-ins that
fail or answer on demand. Nothing that the library itself imports, and no need of pytest.
"""
