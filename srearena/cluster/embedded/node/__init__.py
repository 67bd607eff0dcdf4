"""A node of the cluster: its kubelet, and the containers that run on it."""

from srearena.cluster.embedded.node.catalogue import register_images
from srearena.cluster.embedded.node.machine import NodeSpec
from srearena.cluster.embedded.node.nodes import Nodes, start_nodes

__all__ = ["NodeSpec", "Nodes", "register_images", "start_nodes"]
