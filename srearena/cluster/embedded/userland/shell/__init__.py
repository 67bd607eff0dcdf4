"""A small honest shell and the tools one expects beside it, all on virtual time."""
