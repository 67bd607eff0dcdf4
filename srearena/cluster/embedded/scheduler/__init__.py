"""The scheduler: selects a node for each pod, or reports why none fits."""
