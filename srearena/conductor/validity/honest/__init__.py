"""Honest repairs other than the reference remedy: agent scripts that must pass."""
