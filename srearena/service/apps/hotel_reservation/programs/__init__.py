"""What the requests of Hotel Reservation do to its data."""
