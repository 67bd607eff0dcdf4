"""Redis and Valkey: what the server stores and answers, and the client redis-cli."""
