"""The backend for real clusters: contexts, the cluster itself, and access to its machines."""

from srearena.cluster.kubernetes.cluster import KubernetesCluster
from srearena.cluster.kubernetes.contexts import Context, default_kubeconfig, read_context

__all__ = ["Context", "KubernetesCluster", "default_kubeconfig", "read_context"]
