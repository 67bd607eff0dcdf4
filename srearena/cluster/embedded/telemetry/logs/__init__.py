"""Logs of all containers, stored beyond their end and served through Loki's HTTP API in LogQL."""
