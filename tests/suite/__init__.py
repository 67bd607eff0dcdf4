"""The test suite itself: what it selects, skips and guards."""
