"""The lifecycle of one pod: admission, start, status, stop."""
