"""`srearena view`: a local web application over the results of runs and leaderboards."""
