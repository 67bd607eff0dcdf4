"""The embedded cluster as an operator meets it: through the real kubectl."""
