"""Probes and lifecycle hooks, and the requests they send."""
