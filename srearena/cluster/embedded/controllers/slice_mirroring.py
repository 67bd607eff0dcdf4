"""Endpoints written by hand become endpoint slices."""
