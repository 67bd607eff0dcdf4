"""Manifests of the telemetry that is installed on a real cluster which has none; see `docs/kubernetes-backend.md`."""
