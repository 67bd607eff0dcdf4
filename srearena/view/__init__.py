"""`srearena view`: a local web application over results, leaderboards and running incidents."""
