"""Configuration texts for coding CLIs and editors that connect to the server."""

from __future__ import annotations

import json
import sys
from typing import Any

_NAME = "srearena"


def stdio(url: str, token: str, mode: str) -> dict[str, Any]:
    """The server as a process that the agent starts; the token is in its environment, not on the command line."""
    return {
        "command": sys.executable,
        "args": ["-P", "-m", "sre_tools.live", "--mode", mode],
        "env": {"SREARENA_URL": url, "SREARENA_TOKEN": token},
    }


def configurations(mcp_url: str, token: str, process: dict[str, Any]) -> dict[str, str]:
    """Configuration text by agent and file name."""
    headers = {"Authorization": f"Bearer {token}"}

    def under(key: str, entry: dict[str, Any]) -> str:
        return json.dumps({key: {_NAME: entry}}, indent=2)

    return {
        "Claude Code (.mcp.json)": under("mcpServers", {"type": "http", "url": mcp_url, "headers": headers}),
        "Codex (~/.codex/config.toml)": (
            f"[mcp_servers.{_NAME}]\nurl = {json.dumps(mcp_url)}\n"
            f"http_headers = {{ Authorization = {json.dumps(headers['Authorization'])} }}\n"
            "required = true\nstartup_timeout_sec = 60\ntool_timeout_sec = 900"
        ),
        "Gemini CLI (.gemini/settings.json)": under(
            "mcpServers", {"httpUrl": mcp_url, "headers": headers, "trust": True}
        ),
        "Cursor (.cursor/mcp.json)": under("mcpServers", {"url": mcp_url, "headers": headers}),
        "VS Code (.vscode/mcp.json)": under("servers", {"type": "http", "url": mcp_url, "headers": headers}),
        "anything that starts its servers itself (stdio)": under("mcpServers", process),
    }
