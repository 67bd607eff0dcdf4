"""Commands that a shell runs itself, because they change it."""
