"""`python -m zero`: the `zero` command."""

from zero.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
