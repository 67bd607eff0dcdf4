"""What containers do: one program per image repository, found through `registry`."""
