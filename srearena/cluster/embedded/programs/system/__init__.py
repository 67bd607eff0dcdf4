"""Programs of the cluster itself and of its tests."""
