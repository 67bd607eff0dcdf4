"""`python -m itbench_leaderboard`."""

import sys

from itbench_leaderboard.cli import main

if __name__ == "__main__":
    sys.exit(main())
