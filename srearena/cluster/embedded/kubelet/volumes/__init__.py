"""Volumes of pods: provisioned, projected, refreshed."""
