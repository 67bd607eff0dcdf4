"""The problems, one module per family, and what they are made of (`base`, `registry`, `metadata`, `composition`)."""
