"""The `srearena` command, and `python -m srearena`.

Words that must be hidden are hidden before anything else is loaded, since that starts the process again.
"""

from __future__ import annotations

import sys

from srearena.concealment import arguments


def main() -> None:
    words = arguments(sys.argv[1:])
    from srearena.cli import run

    run(words)


if __name__ == "__main__":
    main()
