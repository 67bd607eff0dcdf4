"""kubectl and a small shell around it, in one of three modes, with a way back."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict, Field

from sre_tools.errors import ToolError
from sre_tools.live import kubectl_modes
from sre_tools.live.changes import Changes
from sre_tools.live.toolset import LiveTool
from srearena.conductor.actions import command_line
from srearena.conductor.actions.kubectl_line import KubectlLine
from srearena.conductor.actions.kubectl_process import KubectlProcess


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class KubectlArguments(_Arguments):
    command: str | list[str] = Field(
        description='the command line, with or without the word kubectl: "get pods -A"; or its words as a list'
    )
    stdin: str = Field("", description="what the command reads with `-f -`: manifests as YAML or JSON")


class ShellArguments(_Arguments):
    command: str = Field(description="kubectl commands joined by ; && ||, piped into grep, head, tail, sort, uniq, wc")


class RollbackArguments(_Arguments):
    change: int | None = Field(None, description="which one, by its number; the latest by default")


class NoArguments(_Arguments):
    pass


class KubectlTools:
    """One identity, one mode. What is changed in safe mode can be put back."""

    def __init__(self, process: KubectlProcess, changes: Changes, mode: str, sleep: Callable[[float], None]) -> None:
        if mode not in kubectl_modes.MODES:
            raise ToolError(f"there is no mode {mode!r}: choose from {', '.join(kubectl_modes.MODES)}")
        self._process = process
        self._changes = changes
        self._mode = mode
        self._sleep = sleep

    def tools(self) -> list[LiveTool]:
        reads = self._mode == "read-only"
        said = {
            "read-only": "Only commands that read run here.",
            "safe": "Changes are tried by the server first, and can be put back with `rollback`.",
            "full": "",
        }[self._mode]
        found = [
            LiveTool(
                "kubectl",
                f"Run one kubectl command. {said} There is no terminal and there are no files: give manifests in "
                "`stdin` and name them `-f -`.",
                KubectlArguments,
                self.kubectl,
                reads=reads,
            ),
            LiveTool(
                "shell",
                "Run kubectl commands joined by ; && and ||, piped into grep, head, tail, sort, uniq, wc, cut, tr. "
                f"{said} A manifest can be given as a here-document. Nothing else runs.",
                ShellArguments,
                self.shell,
                reads=reads,
            ),
        ]
        if self._mode == "safe":
            found += [
                LiveTool("changes", "What was changed through these tools.", NoArguments, self.listing, reads=True),
                LiveTool(
                    "rollback",
                    "Put the objects that a change touched back to what they were before it.",
                    RollbackArguments,
                    self.rollback,
                    reads=False,
                ),
            ]
        return found

    def kubectl(self, given: KubectlArguments) -> str:
        try:
            words = shlex.split(given.command) if isinstance(given.command, str) else list(given.command)
        except ValueError as problem:
            raise ToolError(f"the command line cannot be read: {problem}") from problem
        words = words[1:] if words[:1] == ["kubectl"] else words
        status, printed = self._run(words, given.stdin)
        if status and not (status == 1 and kubectl_modes.parse(words).verb == "diff"):  # which says so by it
            raise ToolError(printed.strip() or f"kubectl ended with status {status}")
        return printed

    def shell(self, given: ShellArguments) -> str:
        return command_line.run(given.command, self._run, self._sleep)

    def listing(self, given: NoArguments) -> str:
        return self._changes.listing()

    def rollback(self, given: RollbackArguments) -> str:
        return self._changes.roll_back(given.change)

    def _run(self, words: Sequence[str], stdin: str) -> tuple[int, str]:
        line = kubectl_modes.parse(words)
        kubectl_modes.allow(line, self._mode)
        if self._mode != "safe" or kubectl_modes.reads(line):
            return self._process.run(line.words, stdin)
        return self._run_safely(line, stdin)

    def _run_safely(self, line: KubectlLine, stdin: str) -> tuple[int, str]:
        trial = kubectl_modes.trial(line)
        if trial is not None:
            status, printed = self._process.run(trial, stdin)
            if status:
                return status, f"{printed.rstrip()}\n(this was the server's dry run: nothing was changed)\n"
        shown = kubectl_modes.preview(line)
        change = None
        if shown is not None:
            _, objects = self._process.run(shown, stdin)
            change = self._changes.saved(f"kubectl {shlex.join(line.words)}", objects)
        status, printed = self._process.run(line.words, stdin)
        if change is None:
            return status, printed + ("" if line.verb in ("exec", "logs") else "(this cannot be rolled back)\n")
        self._changes.keep(change)  # also where it failed half way
        return status, f"{printed.rstrip()}\n(change {change.number}; `rollback` puts it back)\n"
