"""A world as a document: how an episode was prepared, and what was asked of it since.

With a stopped clock nothing else decides what an episode is, so the same requests make the same world again, to the
byte. In real time every request also has the instant at which it was made: the world that they make differs from the
first one in milliseconds, and in what depends on these. What tools of the agent's own did through the kubeconfig is not
recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError

FILE = "journal.json"
"""The name of the file in the folder of a trial."""
_FORMATS = (1, 2)
"""Format 2 has the instants of episodes in real time."""
_REQUESTS = ("act", "submit", "reseed")


@dataclass(frozen=True, slots=True)
class Journal:
    """The problem, the specification with the instant at which the agent started, and the requests in their order."""

    problem: str
    spec: EpisodeSpec
    requests: tuple[Mapping[str, Any], ...] = field(default=())
    began: float | None = None
    """When the agent started in real time: each request then has the instants `at` and `until`, the seconds of them
    that `flowed`, and the number of its `line` in the event log. None where the clock stood still, but for
    what actions waited."""
    late: float = 0.0
    """Seconds for which the system was healthy longer than its timeline says."""

    @classmethod
    def of_real_time(cls, episode: Episode, spec: EpisodeSpec) -> Journal | None:
        """The journal of an episode whose clock flowed; None where nothing was recorded, as on a real cluster."""
        requests = episode.requests
        if requests.began is None:
            return None
        spec = replace(spec, start=requests.made_for, speed=0.0)
        return cls(episode.problem.id, spec, tuple(requests.entries), requests.began, episode.late)

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

    def up_to_line(self, line: int) -> Journal:
        """The journal of an episode in real time, up to an entry of its event log, counted from 0."""
        return replace(self, requests=tuple(request for request in self.requests if request["line"] <= line))

    def write(self, path: Path) -> None:
        document = {
            "format": max(_FORMATS),
            "problem": self.problem,
            "spec": self.spec.as_document(),
            **({"began": self.began, "late": self.late} if self.began is not None else {}),
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
                f"{file} cannot be read ({problem.strerror}): only graded trials on an embedded cluster have a journal"
            ) from problem
        except ValueError as problem:
            raise ArenaError(f"{file} is not a journal: {problem}") from problem
        try:
            if document["format"] not in _FORMATS:
                known = " and ".join(map(str, _FORMATS))
                raise ArenaError(f"{file} has format {document['format']}, and this version reads {known}")
            requests = tuple(document["requests"])
            if not all(request["do"] in _REQUESTS for request in requests):
                raise ValueError("an unknown request")
            began = document.get("began")
            if began is not None:
                for request in requests:
                    times = request["line"], request["at"], request["until"], request["flowed"]
                    if not all(isinstance(time, int | float) for time in times):
                        raise ValueError("an instant that is not a number")
            spec = EpisodeSpec.from_document(document["spec"])
            return cls(document["problem"], spec, requests, began, float(document.get("late", 0.0)))
        except (KeyError, TypeError, ValueError) as problem:
            raise ArenaError(f"{file} is not a journal: {problem!r}") from problem
