"""Distributed traces: OpenTelemetry spans in memory, served through Jaeger's query API."""
