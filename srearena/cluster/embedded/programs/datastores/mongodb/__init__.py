"""MongoDB: the server's state and commands, and the two shells that speak to it."""
