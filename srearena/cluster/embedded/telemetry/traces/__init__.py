"""Distributed traces: spans as OpenTelemetry describes them, kept in memory, read through Jaeger's query API."""
