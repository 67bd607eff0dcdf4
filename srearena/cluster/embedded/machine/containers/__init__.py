"""Containers and pod sandboxes: the container runtime."""
