"""Image references, the catalogue of registries, and the images stored on a machine."""
