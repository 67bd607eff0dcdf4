"""A simulated machine: files, processes, sockets, images, containers and resource meters."""
