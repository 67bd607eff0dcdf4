"""What requests to Blueprint Hotel Reservation do to its data."""
