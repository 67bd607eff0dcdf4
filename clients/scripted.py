"""The scripted agent: takes its actions from a file, one after the other, whatever the results are.

The file has one action per paragraph (`kubectl ...` lines or calls as an agent writes them); lines that start with #
are comments. Used with `srearena run ID --agent scripted --script FILE`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from srearena.conductor.errors import ArenaError


class ScriptedAgent:
    """Plays back actions."""

    def __init__(self, script: str | Path | None = None, actions: Sequence[str] = ()) -> None:
        self._actions = list(actions)
        self.states: list[str] = []
        """All states that the agent received, in order."""
        if script is not None:
            try:
                self._actions += actions_in(Path(script).read_text())
            except OSError as problem:
                raise ArenaError(f"the script cannot be read: {problem}") from problem
        if not self._actions:
            raise ArenaError("the scripted agent needs a script with at least one action: --script FILE")

    async def get_action(self, state: str) -> str:
        self.states.append(state)
        if not self._actions:
            raise ArenaError("the script has ended before the episode")
        return f"```\n{self._actions.pop(0)}\n```"


def actions_in(text: str) -> list[str]:
    """The actions of a script: paragraphs without their comments."""
    paragraphs = re.split(r"\n\s*\n", text)
    uncommented = ("\n".join(line for line in p.splitlines() if not line.startswith("#")).strip() for p in paragraphs)
    return [action for action in uncommented if action]


AGENT = ScriptedAgent
