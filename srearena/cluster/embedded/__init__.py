"""A Kubernetes cluster simulated in our own process: real API on the wire, virtual nodes, network and time."""
