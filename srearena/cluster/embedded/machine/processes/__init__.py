"""Processes, signals, terminals, credentials and what running code costs."""
