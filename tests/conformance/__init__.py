"""Kubernetes' own conformance tests, unmodified and built from their published modules, against embedded clusters.

`make conformance` builds them (once; about ten minutes of CPU and 3 GB) and runs all of `names.txt`, which lists the
tests of the release's conformance.yaml. `python -m tests.conformance --help` tells how to run a part.
"""
