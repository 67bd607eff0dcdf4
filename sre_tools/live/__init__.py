"""Tools over a running episode, as one MCP server: kubectl, Prometheus, Loki, Jaeger, a shell, analysis, submission.

The server knows an episode by its address and token only (`srearena serve` prints both); it works with the agent's own
identity, and every call becomes part of the episode's record.
"""
