"""Execution of kubectl commands in a mode; in safe mode with a server-side dry run and saved objects first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from sre_tools.errors import ToolError
from sre_tools.live import kubectl_modes
from sre_tools.live.changes import Changes
from srearena.conductor.actions.kubectl_command import KubectlCommand
from srearena.conductor.actions.kubectl_process import KubectlProcess


class KubectlRunner:
    """One identity and one mode."""

    def __init__(self, process: KubectlProcess, changes: Changes, mode: str) -> None:
        if mode not in kubectl_modes.MODES:
            raise ToolError(f"there is no mode {mode!r}: choose from {', '.join(kubectl_modes.MODES)}")
        self._process = process
        self._changes = changes
        self._mode = mode

    def run(self, words: Sequence[str], stdin: str) -> tuple[int, str]:
        """Exit status and output of a command, given as its words without `kubectl`."""
        line = kubectl_modes.parse(words)
        kubectl_modes.allow(line, self._mode)
        if self._mode != "safe" or kubectl_modes.reads(line):
            return self._process.run(line.words, stdin)
        return self._run_safely(line, stdin)

    def _run_safely(self, line: KubectlCommand, stdin: str) -> tuple[int, str]:
        trial = kubectl_modes.trial(line)
        if trial is not None:
            status, printed = self._process.run(trial, stdin)
            if status:
                return status, f"{printed.rstrip()}\n(this was the server's dry run: nothing was changed)\n"
        preview = kubectl_modes.preview(line)
        change = None
        if preview is not None:
            _, objects = self._process.run(preview, stdin)
            change = self._changes.save(f"kubectl {shlex.join(line.words)}", objects)
        status, printed = self._process.run(line.words, stdin)
        if change is None:
            return status, printed + ("" if line.verb in ("exec", "logs") else "(this cannot be rolled back)\n")
        self._changes.add(change)  # also after a failure: the command may have changed some of the objects
        return status, f"{printed.rstrip()}\n(change {change.number}; `rollback` puts it back)\n"
