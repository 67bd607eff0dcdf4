"""The shell agent: gives prepared answers, and repairs by running a shell script with its own kubeconfig.

The script runs once, when the mitigation stage opens, as an engineer would run it: `bash` with `KUBECONFIG` set and an
empty home folder. Reference remedies, cheats and honest variants are played this way through the same trials as any
agent (`--agent-option commands=...`, or `--script FILE`).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from srearena.conductor.errors import ArenaError
from srearena.conductor.stages import STAGES
from srearena.go_programs import NO_COLLECTION

_HEALTHY: Mapping[str, Any] = {
    "detection": "No",
    "localization": [],
    "analysis": {"system_level": "None", "fault_type": "None"},
    "diagnosis": {"entities": []},
    "mitigation": None,
}
_SECONDS = 600.0
"""Real seconds; the longest reference remedy takes about a twentieth of it at the speed of a proof."""
_LONGEST_ERROR = 2_000


class ShellAgent:
    """Answers from a table; a script for the mitigation."""

    def __init__(
        self,
        commands: str = "",
        script: str | Path | None = None,
        answers: Mapping[str, Any] | str | None = None,
        seconds: float | str = _SECONDS,
    ) -> None:
        if script is not None:
            try:
                commands = Path(script).read_text()
            except OSError as problem:
                raise ArenaError(f"the script cannot be read: {problem}") from problem
        own_answers: Mapping[str, Any] = json.loads(answers) if isinstance(answers, str) else answers or {}
        self._commands = commands
        self._answers = {**_HEALTHY, **own_answers}
        self._seconds = float(seconds)
        self._kubeconfig: Path | None = None

    def connect(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    async def get_action(self, state: str) -> str:
        stage = next((name for name in self._answers if STAGES[name].question in state), "mitigation")
        if stage == "mitigation" and self._commands:
            commands, self._commands = self._commands, ""
            await self._run(commands)
        answer = self._answers[stage]
        return "```\nsubmit()\n```" if answer is None else f"```\nsubmit({answer!r})\n```"

    async def _run(self, commands: str) -> None:
        # A killed kubectl may still write to its cache.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            own = {"KUBECONFIG": str(self._kubeconfig), "HOME": home, "PATH": os.environ.get("PATH", "")}
            process = await asyncio.create_subprocess_exec(
                *("bash", "-euo", "pipefail", "-c", commands),
                env={**own, **NO_COLLECTION},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            try:
                _, errors = await asyncio.wait_for(process.communicate(), self._seconds)
            except TimeoutError:
                raise ArenaError(f"the script did not end within {self._seconds:g} s") from None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            text = errors.decode("utf-8", "replace").strip()[-_LONGEST_ERROR:]
            raise ArenaError(f"the script failed with status {process.returncode}: {text}")


AGENT = ShellAgent
