"""What a new cluster holds before anybody has done anything to it."""
