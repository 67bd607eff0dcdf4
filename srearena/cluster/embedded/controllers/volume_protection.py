"""Claims and volumes in use are not taken away."""
