"""The `srearena` command, and `python -m srearena`.

Arguments that must not appear in the process list are hidden before any other import, since that restarts the process.
"""

from __future__ import annotations

import sys

from srearena.concealment import arguments


def main() -> None:
    argv = arguments(sys.argv[1:])
    from srearena.cli import run

    run(argv)


if __name__ == "__main__":
    main()
