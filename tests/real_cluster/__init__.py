"""A real Kubernetes on this machine alone: built from its published modules, started and stopped by one command.

Nothing here is part of the product; it is the yardstick that `tests/parity` measures the embedded cluster with.
"""
