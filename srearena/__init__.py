"""SREArena: put AI agents for site reliability engineering to the test."""

import os
import sys


def _leave_out_working_directory() -> None:
    """Take the working directory off the module path where a package beside this one runs as a program (`python -m`).

    Python puts it first, so that a `yaml.py` beside the user's files would be imported in place of ours. Our own source
    folder stays. Nothing but built-in and frozen modules may be imported before this.
    """
    # While Python looks for the program, argv has `-m` in place of its path.
    words = sys.orig_argv
    if sys.flags.safe_path or sys.argv[:1] != ["-m"] or "-m" not in words[:-1] or not sys.path:
        return
    package = words[words.index("-m") + 1].partition(".")[0]
    installation = os.path.dirname(__path__[0])  # noqa: PTH120 - pathlib could be the user's
    working_directory = os.getcwd()  # noqa: PTH109
    ours = os.path.isdir(os.path.join(installation, package))  # noqa: PTH112, PTH118
    if ours and sys.path[0] in ("", working_directory) and installation != working_directory:
        del sys.path[0]


_leave_out_working_directory()
