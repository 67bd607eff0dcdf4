"""Long-lived tokens of service accounts."""
