"""A node of the cluster: its kubelet, and the containers that run on it."""
