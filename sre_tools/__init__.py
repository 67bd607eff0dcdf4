"""MCP tools for incident investigation: over recorded incidents and over running episodes."""

import srearena  # noqa: F401 - first: it takes the working directory off the module path
