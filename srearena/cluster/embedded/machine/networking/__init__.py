"""Sockets, connections, HTTP messages, certificates: a machine's side of the network."""
