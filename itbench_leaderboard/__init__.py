"""The leaderboard: run agents on incidents, resume, judge and rank them.

`itbench_leaderboard.config.load` reads a `model_leaderboard.toml`; `itbench_leaderboard.campaign.Campaign` is
the code behind `python -m itbench_leaderboard`. This module imports nothing else, so that workers start fast.
"""

import srearena  # noqa: F401 - first: it takes the working directory off the module path
