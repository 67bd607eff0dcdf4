"""One module per command of `srearena`, each with a `command`; adding a command is adding a module."""
