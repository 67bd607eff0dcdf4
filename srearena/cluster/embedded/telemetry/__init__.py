"""Telemetry of the cluster: metrics, logs, traces and alerts, and the HTTP APIs that serve them."""
