"""`Incident`: an incident as a document of a few lines, from which the same episode can be made anywhere.

    format: srearena.incident/1
    application: hotel_reservation
    seed: 17
    noise: true
    load:
      rate: 140
    faults:
    - problem: readiness_probe_misconfiguration_hotel_reservation
      arguments: {service: search, path: /livez}

Each fault is that of a registered problem, with other arguments of its constructor. The id is a digest of what decides
the episode, so the same incident has the same id, whatever its file is called. A file may come from anywhere: nothing
in it is executed, and it names problems and their arguments only.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import yaml

from srearena.conductor.errors import ProblemError
from srearena.conductor.problems.metadata import Difficulty

FORMAT = "srearena.incident/1"
SUFFIXES = (".yaml", ".yml")
_LARGEST = 65_536
_MOST_FAULTS = 5
_LONGEST_WAIT = 3600.0
_FIELDS = frozenset(
    ("format", "application", "seed", "noise", "load", "faults", "title", "inspiration", "difficulty", "features")
)
_FAULT_FIELDS = frozenset(("problem", "arguments", "after", "lasts", "pause"))


@dataclass(frozen=True, slots=True)
class FaultPart:
    """One fault of an incident, and how it arrives."""

    problem: str
    """The id of the registered problem whose fault this is."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of its constructor that differ from the registered ones."""
    after: float = 0.0
    """Seconds after the fault before it, or after the healthy phase."""
    lasts: float | None = None
    """Seconds after which it ends by itself; None where it stays."""
    pause: float | None = None
    """Seconds after which a fault that has ended comes back, and stays; None where it does not."""

    @property
    def is_gone(self) -> bool:
        """Whether the fault has ended before the agent starts: it is no part of the answer."""
        return self.lasts is not None and self.pause is None

    @property
    def seconds(self) -> float:
        """How long its arrival takes."""
        return self.after + (self.lasts or 0.0) + (self.pause or 0.0)

    def as_document(self) -> dict[str, Any]:
        document: dict[str, Any] = {"problem": self.problem}
        if self.arguments:
            document["arguments"] = dict(self.arguments)
        if self.after:
            document["after"] = self.after
        if self.lasts is not None:
            document["lasts"] = self.lasts
        if self.pause is not None:
            document["pause"] = self.pause
        return document


@dataclass(frozen=True, slots=True)
class Incident:
    application: str
    faults: tuple[FaultPart, ...]
    seed: int | None = None
    """The seed of the episode; None for that of the run."""
    noise: bool | None = None
    """Whether there are innocent changes; None for that of the run."""
    load: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the application's load that replace those of its `workload.yaml`."""
    title: str = ""
    inspiration: str = ""
    """The URL of a public report on a similar incident."""
    difficulty: Difficulty | None = None
    features: Mapping[str, Any] = field(default_factory=dict)
    """What was measured when the incident was proven; decides nothing."""

    @property
    def id(self) -> str:
        text = json.dumps(self._deciding(), sort_keys=True)
        return f"incident-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def _deciding(self) -> dict[str, Any]:
        """What decides the episode."""
        return {
            "format": FORMAT,
            "application": self.application,
            "seed": self.seed,
            "noise": self.noise,
            "load": dict(self.load),
            "faults": [part.as_document() for part in self.faults],
        }

    def as_document(self) -> dict[str, Any]:
        described = {
            "title": self.title,
            "inspiration": self.inspiration,
            "difficulty": self.difficulty,
            "features": dict(self.features),
        }
        document = {**self._deciding(), **described}
        return {key: value for key, value in document.items() if value not in (None, "", {})}

    def write(self, path: Path) -> None:
        path.write_text(yaml.safe_dump(self.as_document(), sort_keys=False, width=120), encoding="utf-8")


def is_incident_file(text: str) -> bool:
    return text.endswith(SUFFIXES)


def read_incident(path: Path) -> Incident:
    """The incident in a file; ProblemError where it is none."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LARGEST + 1)
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is no text"
        raise ProblemError(f"{path} cannot be read: {reason}") from problem
    if len(text) > _LARGEST:
        raise ProblemError(f"{path} is larger than an incident can be")
    try:
        return parse_incident(yaml.safe_load(text))
    except (yaml.YAMLError, RecursionError) as problem:
        raise ProblemError(f"{path} is no YAML document: {' '.join(str(problem).split())[:200]}") from problem
    except ProblemError as problem:
        raise ProblemError(f"{path}: {problem}") from problem


def parse_incident(document: Any) -> Incident:
    """The incident in a document; ProblemError says what is wrong with it."""
    fields = _mapping(document, "an incident", _FIELDS)
    if fields.get("format") != FORMAT:
        raise ProblemError(f"the format is {fields.get('format')!r}, and this version reads {FORMAT}")
    faults = fields.get("faults")
    if not isinstance(faults, list) or not 1 <= len(faults) <= _MOST_FAULTS:
        raise ProblemError(f"`faults` is a list of one to {_MOST_FAULTS} faults")
    seed, noise, difficulty = fields.get("seed"), fields.get("noise"), fields.get("difficulty")
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise ProblemError(f"`seed` is a whole number from 0, not {seed!r}")
    if noise is not None and not isinstance(noise, bool):
        raise ProblemError(f"`noise` is true or false, not {noise!r}")
    if difficulty is not None and difficulty not in get_args(Difficulty):
        raise ProblemError(f"`difficulty` is one of {', '.join(get_args(Difficulty))}, not {difficulty!r}")
    incident = Incident(
        application=_text(fields, "application", required=True),
        faults=tuple(_fault(each) for each in faults),
        seed=seed,
        noise=noise,
        load=_plain(_mapping(fields.get("load", {}), "`load`")),
        title=_text(fields, "title"),
        inspiration=_text(fields, "inspiration"),
        difficulty=difficulty,
        features=_plain(_mapping(fields.get("features", {}), "`features`")),
    )
    if all(part.is_gone for part in incident.faults):
        raise ProblemError("all faults end before the agent starts: one must stay, or come back after a `pause`")
    return incident


def _fault(document: Any) -> FaultPart:
    fields = _mapping(document, "a fault", _FAULT_FIELDS)
    part = FaultPart(
        problem=_text(fields, "problem", required=True),
        arguments=_plain(_mapping(fields.get("arguments", {}), "`arguments`")),
        after=_seconds(fields.get("after", 0), "after"),
        lasts=_seconds(fields["lasts"], "lasts") if "lasts" in fields else None,
        pause=_seconds(fields["pause"], "pause") if "pause" in fields else None,
    )
    if part.pause is not None and part.lasts is None:
        raise ProblemError("a fault with a `pause` says how long it `lasts` before")
    return part


def _mapping(value: Any, what: str, allowed: Iterable[str] | None = None) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ProblemError(f"{what} is a mapping, not {value!r:.80}")
    unknown = sorted(set(value) - set(allowed)) if allowed is not None else []
    if unknown:
        raise ProblemError(f"{what} has no field {', '.join(unknown)}")
    return dict(value)


def _plain(value: Any) -> Any:
    """Values as JSON knows them; dates and other types that YAML has are refused."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ProblemError(f"{value!r:.80} is neither a text nor a number, a list or a mapping")


def _text(fields: Mapping[str, Any], name: str, *, required: bool = False) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str) or (required and not value):
        raise ProblemError(f"`{name}` is a text, not {value!r:.80}")
    return value


def _seconds(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LONGEST_WAIT:
        raise ProblemError(f"`{name}` is a number of seconds up to {_LONGEST_WAIT:g}, not {value!r:.80}")
    return float(value)
