"""Experiment tracking: spans over OTLP, runs to Weights & Biases. Enabled by environment variables.

Everything is derived from the session files on disk after an episode, so that tracking costs an episode nothing and an
unreachable tracker loses no data.
"""
