"""Interfaces to a running episode: HTTP, MCP and an interactive console."""
