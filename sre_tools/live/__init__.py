"""MCP server over a running episode: kubectl, a shell, Prometheus, Loki, Jaeger, analysis, submission.

The server reaches the episode by its URL and token only (`srearena serve` prints both), uses the agent's identity, and
records every call in the episode's session.
"""
