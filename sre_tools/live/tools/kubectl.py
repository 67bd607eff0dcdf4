"""kubectl, shell, changes, rollback: work on the cluster in one of three modes (`sre_tools.live.kubectl_modes`)."""

from __future__ import annotations

import shlex
from dataclasses import replace

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.live import kubectl_modes
from sre_tools.live.context import LiveContext
from sre_tools.registry import NoArguments, Tool, ToolArguments, tool
from srearena.conductor.actions import command_line

_MODE_NOTES = {
    "read-only": "Only commands that read run here.",
    "safe": "Changes are tried by the server first, and can be put back with `rollback`.",
    "full": "",
}


def _describe_mode(tool: Tool, mode: str) -> Tool:
    description = tool.description.replace("{mode}", _MODE_NOTES[mode])
    reads = mode == "read-only"
    return replace(tool, description=description, read_only=reads, destructive=not reads)


def _safe_mode_only(tool: Tool, mode: str) -> Tool | None:
    return tool if mode == "safe" else None


class KubectlArguments(ToolArguments):
    command: str | list[str] = Field(
        description='the command line, with or without the word kubectl: "get pods -A"; or its words as a list'
    )
    stdin: str = Field("", description="what the command reads with `-f -`: manifests as YAML or JSON")


@tool(order=40, read_only=False, for_mode=_describe_mode)
def kubectl(live: LiveContext, arguments: KubectlArguments) -> str:
    """Run one kubectl command. {mode} There is no terminal and there are no files: give manifests in `stdin` and name
    them `-f -`."""
    command = arguments.command
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as problem:
        raise ToolError(f"the command line cannot be read: {problem}") from problem
    words = words[1:] if words[:1] == ["kubectl"] else words
    status, printed = live.kubectl.run(words, arguments.stdin)
    # `kubectl diff` exits with 1 where it found differences.
    if status and not (status == 1 and kubectl_modes.parse(words).verb == "diff"):
        raise ToolError(printed.strip() or f"kubectl ended with status {status}")
    return printed


class ShellArguments(ToolArguments):
    command: str = Field(description="kubectl commands joined by ; && ||, piped into grep, head, tail, sort, uniq, wc")


@tool(order=50, read_only=False, for_mode=_describe_mode)
def shell(live: LiveContext, arguments: ShellArguments) -> str:
    """Run kubectl commands joined by ; && and ||, piped into grep, head, tail, sort, uniq, wc, cut, tr. {mode} A
    manifest can be given as a here-document. Nothing else runs."""
    return command_line.run(arguments.command, live.kubectl.run, live.sleep)


@tool(order=60, for_mode=_safe_mode_only)
def changes(live: LiveContext, arguments: NoArguments) -> str:
    """What was changed through these tools."""
    return live.changes.listing()


class RollbackArguments(ToolArguments):
    change: int | None = Field(None, description="which one, by its number; the latest by default")


@tool(order=70, read_only=False, for_mode=_safe_mode_only)
def rollback(live: LiveContext, arguments: RollbackArguments) -> str:
    """Put the objects that a change touched back to what they were before it."""
    return live.changes.roll_back(arguments.change)
