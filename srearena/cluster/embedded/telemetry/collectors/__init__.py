"""Collectors: one module per exporter that Prometheus scrapes, each turning the cluster's state into samples."""
