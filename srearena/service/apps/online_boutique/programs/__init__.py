"""What requests to Online Boutique do to its data."""
