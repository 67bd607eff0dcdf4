"""MCP tools for incident investigation: over recorded incidents and over running episodes."""
