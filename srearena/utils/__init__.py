"""Names that users of the original project import from here."""
