"""Programs of third-party products that several applications deploy."""
