"""The Kubernetes API on the wire: what a client outside can see and do of the cluster."""
