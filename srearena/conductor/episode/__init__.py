"""One episode: its cluster, its preparation, the stages and how it ends."""
