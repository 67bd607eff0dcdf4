"""MySQL and what speaks like it: the server's databases, accounts and sessions, and the client mysql."""
