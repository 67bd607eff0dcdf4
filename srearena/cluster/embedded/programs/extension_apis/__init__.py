"""Extension API servers: programs that serve API groups of their own behind the API server."""
