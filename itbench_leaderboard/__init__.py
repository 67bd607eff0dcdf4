"""Many agents, many incidents, many runs: started, resumed, judged, summed up.

`itbench_leaderboard.configuration.load` reads a `model_leaderboard.toml`; `itbench_leaderboard.campaign.Campaign` does
what `python -m itbench_leaderboard` does. Nothing is imported here: a worker should start at once.
"""
