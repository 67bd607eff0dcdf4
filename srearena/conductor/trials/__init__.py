"""Trials of a run: one, many in parallel, and their progress on a terminal."""
