"""A world as a document: how an episode was prepared, and what was asked of it since.

With a stopped clock nothing else decides what an episode is, so the same requests make the same world again, to the
byte. What tools of the agent's own did through the kubeconfig is not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError

FILE = "journal.json"
"""The name of the file in the folder of a trial."""
_FORMAT = 1
_REQUESTS = ("act", "submit", "reseed")


@dataclass(frozen=True, slots=True)
class Journal:
    """The problem, the specification with the instant at which the agent started, and the requests in their order."""

    problem: str
    spec: EpisodeSpec
    requests: tuple[Mapping[str, Any], ...] = field(default=())

    def then(self, do: str, **content: Any) -> Journal:
        """The journal with one more request."""
        return replace(self, requests=(*self.requests, {"do": do, **content}))

    def up_to(self, step: int | None) -> Journal:
        """The journal up to an action, counted from 1, or up to the start at 0; all of it without a number."""
        if step is None:
            return self
        actions = [number for number, request in enumerate(self.requests) if request["do"] == "act"]
        if not 0 <= step <= len(actions):
            raise ArenaError(f"there is no step {step}: the journal has {len(actions)} actions")
        return replace(self, requests=self.requests[: actions[step - 1] + 1] if step else ())

    def write(self, path: Path) -> None:
        document = {
            "format": _FORMAT,
            "problem": self.problem,
            "spec": self.spec.as_document(),
            "requests": [dict(request) for request in self.requests],
        }
        path.write_text(json.dumps(document, indent=1, default=str) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Journal:
        """The journal in a file, or in the folder of a trial."""
        file = path / FILE if path.is_dir() else path
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
        except OSError as problem:
            raise ArenaError(
                f"{file} cannot be read ({problem.strerror}): only trials of prepared episodes "
                "(`srearena.conductor.worlds`) have a journal"
            ) from problem
        except ValueError as problem:
            raise ArenaError(f"{file} is not a journal: {problem}") from problem
        try:
            if document["format"] != _FORMAT:
                raise ArenaError(f"{file} has format {document['format']}, and this version reads {_FORMAT}")
            requests = tuple(document["requests"])
            if not all(request["do"] in _REQUESTS for request in requests):
                raise ValueError("an unknown request")
            return cls(document["problem"], EpisodeSpec.from_document(document["spec"]), requests)
        except (KeyError, TypeError, ValueError) as problem:
            raise ArenaError(f"{file} is not a journal: {problem!r}") from problem
