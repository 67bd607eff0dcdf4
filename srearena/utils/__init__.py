"""What several layers use: marks of faults, actions of agents, the cache of replies, outcomes of trials."""
