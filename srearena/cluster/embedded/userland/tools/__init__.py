"""The small tools of a container's userland, one module per group."""
