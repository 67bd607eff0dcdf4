"""The initial objects of a cluster: namespaces, roles, settings and system workloads."""
