"""`python -m itbench_evaluations` is `itbench-eval`."""

from itbench_evaluations.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
