"""Applications, and the ways to a cluster they are deployed through."""
