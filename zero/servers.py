"""MCP servers for agents: built-in and user-defined TOML tables, from which a prompt selects.

A server is a command (`stdio`) or a URL (`http`). Placeholders in it: `{python}`, `{workspace}`, `{snapshot}` (the
first read-only directory; with several, one server for each) and `{env:NAME}`. Secrets are referred to by
name (`env_vars`, `bearer_token_env_var`); their values stay in the environment and are never written.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from zero.errors import RequestError

BUILT_IN = Path(__file__).parent / "zero-config" / "mcp_servers.toml"
_PLACEHOLDER = re.compile(r"\{(?:env:(?P<variable>\w+)|(?P<name>\w+))\}")
_KEYS = {"type", "command", "args", "env", "env_vars", "url", "bearer_token_env_var", "requires", "description"}


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    env_vars: tuple[str, ...] = ()  # passed by name
    url: str = ""
    bearer_token_env_var: str = ""
    requires: tuple[str, ...] = ()  # environment variables that must be set

    @property
    def remote(self) -> bool:
        return bool(self.url)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment variables that the agent's process needs for this server."""
        return tuple(filter(None, (*self.env_vars, self.bearer_token_env_var)))


def _server(name: str, table: Mapping[str, Any], where: Path) -> Server:
    unknown = sorted(set(table) - _KEYS)
    if unknown:
        raise RequestError(
            f"{where}: [{name}] has unknown keys {', '.join(unknown)} (known: {', '.join(sorted(_KEYS))})"
        )
    remote = table.get("type", "http" if "url" in table else "stdio") == "http"
    if not table.get("url" if remote else "command"):
        raise RequestError(f"{where}: [{name}] needs {'a url' if remote else 'a command'}")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise RequestError(f"{where}: a server's name consists of letters, digits, - and _ only, not {name!r}")
    return Server(
        name,
        command=str(table.get("command", "")),
        args=tuple(map(str, table.get("args", ()))),
        env=tuple((str(key), str(value)) for key, value in table.get("env", {}).items()),
        env_vars=tuple(table.get("env_vars", ())),
        url=str(table.get("url", "")),
        bearer_token_env_var=str(table.get("bearer_token_env_var", "")),
        requires=tuple(table.get("requires", ())),
    )


def catalogue(files: Iterable[Path] = ()) -> dict[str, Server]:
    """All servers by name; entries of the user's files replace built-in ones."""
    servers: dict[str, Server] = {}
    for path in (BUILT_IN, *files):
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
            raise RequestError(f"cannot read the MCP servers in {path}: {problem}") from problem
        tables = tables.get("mcp_servers", tables)
        for name, table in tables.items():
            if not isinstance(table, dict):
                raise RequestError(f"{path}: {name} is not a table; servers are tables like [{name}]")
            servers[name] = _server(name, table, path)
    return servers


def _substituted(server: Server, values: Mapping[str, str], environment: Mapping[str, str]) -> Server:
    def fill(text: str) -> str:
        def value(match: re.Match[str]) -> str:
            if match["variable"]:
                return environment.get(match["variable"], "")
            return values.get(match["name"], match[0])

        return _PLACEHOLDER.sub(value, text)

    return replace(
        server,
        command=fill(server.command),
        args=tuple(fill(argument) for argument in server.args),
        env=tuple((key, fill(value)) for key, value in server.env),
        url=fill(server.url),
    )


def _needs_snapshot(server: Server) -> bool:
    return any("{snapshot}" in text for text in (server.command, *server.args, server.url))


def select(
    known: Mapping[str, Server],
    names: Sequence[str] | None,
    *,
    workspace: Path,
    snapshots: Sequence[Path],
    environment: Mapping[str, str],
) -> list[Server]:
    """The servers of one run: those of the names, whose requirements must be met, or else all usable ones."""
    chosen: list[Server] = []
    for name in known if names is None else names:
        server = known.get(name)
        if server is None:
            raise RequestError(
                f"no MCP server is called {name}: known are {', '.join(sorted(known))} (--mcp-servers FILE)"
            )
        missing = [variable for variable in server.requires if not environment.get(variable)]
        requirement = f"the environment variable {missing[0]}" if missing else ""
        if not requirement and _needs_snapshot(server) and not snapshots:
            requirement = "a --read-only-dir with a snapshot"
        if requirement:
            if names is None:
                continue
            raise RequestError(f"the MCP server {name} needs {requirement}")
        copies = snapshots if _needs_snapshot(server) else snapshots[:1] or [workspace]
        for number, snapshot in enumerate(copies, 1):
            values = {"python": sys.executable, "workspace": str(workspace), "snapshot": str(snapshot)}
            substituted = _substituted(server, values, environment)
            chosen.append(replace(substituted, name=name if number == 1 else f"{name}_{number}"))
    return chosen
