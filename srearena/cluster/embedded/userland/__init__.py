"""The shell and the command-line tools that images contain."""
