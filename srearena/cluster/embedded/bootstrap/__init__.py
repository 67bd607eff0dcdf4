"""A cluster's first minutes: nodes, namespaces, roles and system workloads, simulated before anyone looks."""
