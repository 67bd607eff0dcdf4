"""Claims of generic ephemeral volumes."""
