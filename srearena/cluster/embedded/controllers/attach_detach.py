"""Volumes are attached to nodes."""
