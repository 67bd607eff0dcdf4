"""Command lines of Python processes that the harness starts.

`-P` keeps the working directory out of the module path: a `yaml.py` beside the user's files is never imported in place
of ours.
"""

from __future__ import annotations

import sys


def python_module(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module as a program."""
    return [sys.executable, "-P", "-m", module, *arguments]
