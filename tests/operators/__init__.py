"""Operators of others, unmodified and built from their published modules, as processes beside an embedded cluster.

`python -m tests.operators` builds them (once; some minutes of CPU); the tests run where SREARENA_OPERATORS_CACHE names
the folder with the result.
"""
