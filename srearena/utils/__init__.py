"""Names that the original project exports from here."""
