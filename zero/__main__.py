"""`python -m zero` is `zero`."""

from zero.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
