"""Parity, measured: the same scenarios on a real Kubernetes (recorded) and on the embedded one (replayed)."""
