"""Episodes in the interfaces of other frameworks: one module for each, all over `srearena.frameworks.incidents`."""
