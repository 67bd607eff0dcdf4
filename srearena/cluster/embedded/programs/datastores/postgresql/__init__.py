"""PostgreSQL: the server's databases, roles, sessions and locks, and the client psql."""
