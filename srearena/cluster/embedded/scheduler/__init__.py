"""The scheduler: which node a pod goes to, and why none will do."""
