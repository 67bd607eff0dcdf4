"""Cluster roles made of others."""
