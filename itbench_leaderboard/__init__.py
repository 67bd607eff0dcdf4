"""The leaderboard: run agents on incidents, resume, judge and rank them.

`itbench_leaderboard.configuration.load` reads a `model_leaderboard.toml`; `itbench_leaderboard.campaign.Campaign` is
the code behind `python -m itbench_leaderboard`. This module imports nothing, so that workers start fast.
"""
