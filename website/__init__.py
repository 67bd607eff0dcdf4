"""The leaderboard as a static site: `website.building.build` builds it from a leaderboard's results."""
