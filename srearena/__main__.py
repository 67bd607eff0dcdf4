"""`python -m srearena`: the same as the `srearena` command."""

from __future__ import annotations

from srearena.cli import main

if __name__ == "__main__":
    main()
