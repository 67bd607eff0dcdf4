"""Checks before anything is staged: what would fail in every trial is reported once, within a second or two.

The agent is created where its trials run, in its own process, so a check never loads an agent's code into the harness
unless the user asked for that.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srearena.conductor.agent_process.client import AgentFailed, AgentProcess
from srearena.conductor.agent_process.isolation import AUTO, NONE
from srearena.conductor.agents import make_agent
from srearena.conductor.episode.environment import check_configured
from srearena.conductor.errors import ArenaError
from srearena.config import Config
from srearena.errors import InputError, SreArenaError


def check_agent(name: str, options: Mapping[str, Any], isolation: str = AUTO) -> None:
    """ArenaError where the agent cannot be created (model, key, script), or its `preflight` fails (endpoint)."""
    try:
        asyncio.run(_preflight_here(name, options) if isolation == NONE else _preflight(name, options, isolation))
    except (SreArenaError, AgentFailed) as problem:
        raise ArenaError(f"the agent {name!r} cannot start: {problem}") from problem


async def _preflight_here(name: str, options: Mapping[str, Any]) -> None:
    agent: Any = make_agent(name, options)
    try:
        if callable(getattr(agent, "preflight", None)):
            await agent.preflight()
    finally:
        if callable(getattr(agent, "aclose", None)):
            closing = agent.aclose()
            if inspect.isawaitable(closing):
                await closing


async def _preflight(name: str, options: Mapping[str, Any], isolation: str) -> None:
    process = AgentProcess(name, options, isolation=isolation)
    try:
        await process.preflight()
    finally:
        await process.aclose()


def check_cluster(config: Config) -> None:
    """ClusterError where the real cluster that is configured cannot be used; an embedded one always can."""
    if not config.embedded:
        check_configured(config)


def check_folder(folder: Path) -> None:
    """InputError where results cannot be written: not a folder, no permission, a full disk."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"\0")
    except OSError as problem:
        reason = problem.strerror or problem
        raise InputError(f"cannot write results to {folder}: {reason}; SREARENA_RESULTS names another") from problem


def check_port(port: int) -> None:
    """InputError where the port of the loopback interface cannot be used; 0 is any free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as problem:
            raise InputError(f"port {port} cannot be used: {problem.strerror}; choose another --port") from problem
