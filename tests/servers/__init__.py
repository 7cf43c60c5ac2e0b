"""Real servers that the tests run against, started on loopback by their first use.

What may live here: how to find, start, stop and address a server, the proxy that spoils the way
to it, and the fixtures that hand them out. No tests, and nothing of callslip: what is tested with
these must not be able to lean on them.
"""
