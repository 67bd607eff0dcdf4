"""The kubelet: pods on a machine, and the node object that represents it."""
