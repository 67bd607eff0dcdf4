"""Databases, caches, brokers and registries."""
