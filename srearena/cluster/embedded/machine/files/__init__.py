"""Inodes, file systems, streams and mounts."""
