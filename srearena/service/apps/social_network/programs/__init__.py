"""What the requests of Social Network do to its data."""
