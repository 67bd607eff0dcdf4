"""The leaderboard as a static site: `website.building.build` makes one from a leaderboard's results."""
