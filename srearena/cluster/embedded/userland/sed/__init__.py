"""sed: scripts, the lines they edit, and substitution."""
