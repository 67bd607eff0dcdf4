"""The environments an incident can run in, behind one interface."""

from srearena.cluster.base import Cluster, ClusterError, ClusterUnavailable, NodeAccess, NodeAccessError
from srearena.cluster.launcher import start_embedded

__all__ = ["Cluster", "ClusterError", "ClusterUnavailable", "NodeAccess", "NodeAccessError", "start_embedded"]
