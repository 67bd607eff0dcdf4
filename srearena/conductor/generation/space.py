"""The space of candidates: fault, application, target, parameters, arrival, load, innocent changes, further faults.

Candidates are drawn from streams of a seed, so the same seed gives the same candidates. Those of one *world* share the
application, the seed of the episode, the load and the innocent changes, so that the healthy system is prepared once for
all of them. With a key the streams are secret: who does not have it can neither make nor guess the incidents.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.incidents.document import FaultPart, Incident
from srearena.conductor.problems.injected import InjectedProblem, component_stem
from srearena.conductor.problems.noop import Noop
from srearena.conductor.problems.registry import Entry, ProblemRegistry
from srearena.conductor.problems.targets import APPLICATIONS

PER_WORLD = 8
"""Candidates of one world: preparing it takes as long as proving about half a candidate, and worlds should differ."""
_NOT_COMBINED = ("metastable", "none")
_RETURNING = 0.15
"""The share of faults that end by themselves and come back before the agent starts."""
_EARLIER = 0.1
"""The share of incidents with an earlier disturbance that is over when the agent starts."""
_DISTURBANCES = ("network_delay", "pod_failure")
_ATTEMPTS = 40
_LOADS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "wrk": (
        {},
        {"rate": 60},
        {"rate": 130},
        {"rate": {"shape": "ramp", "start": 60, "end": 120, "over": 600}},
        {"rate": {"shape": "diurnal", "mean": 90, "swing": 0.3, "period": 600}},
    ),
    "locust": ({}, {"users": 5}, {"users": 14}),
}
"""Loads by their driver, all within what the healthy applications serve."""
_DRIVERS = {
    "astronomy_shop": "locust",
    "hotel_reservation": "wrk",
    "online_boutique": "locust",
    "social_network": "wrk",
}


@dataclass(frozen=True, slots=True)
class SpaceSpec:
    """Which incidents are asked for."""

    seed: int = 0
    applications: tuple[str, ...] = ()
    """Empty for all."""
    level: str = ""
    faults: tuple[int, int] = (1, 1)
    """The least and the largest number of faults."""
    noise: bool = True
    key: bytes = b""
    """The secret of a held-out set; empty for a public one."""

    def stream(self, *parts: object) -> random.Random:
        text = ":".join(map(str, ("incidents", self.seed, *parts)))
        return random.Random(hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest() if self.key else text)

    def as_document(self) -> dict[str, Any]:
        """All that decides the candidates; of the key only a fingerprint."""
        return {
            "seed": self.seed,
            "applications": list(self.applications),
            "level": self.level,
            "faults": list(self.faults),
            "noise": self.noise,
            "key": hmac.new(self.key, b"fingerprint", hashlib.sha256).hexdigest()[:16] if self.key else "",
        }


@dataclass(frozen=True, slots=True)
class World:
    """A healthy system that several candidates share."""

    number: int
    application: str
    seed: int
    noise: bool
    load: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Template:
    """A registered problem whose fault can be injected into a healthy system on some application."""

    entry: Entry
    application: str
    level: str

    @property
    def family(self) -> str:
        return self.entry.kind.family if self.entry.kind is not None else ""

    def draw(self, stream: random.Random) -> dict[str, Any]:
        """The constructor's arguments that differ from the registered ones."""
        kind, registered = self.entry.kind, self.entry.arguments
        assert kind is not None
        arguments = {**registered, "app": self.application}
        for name, choice in {**kind.varies_further, **kind.varies}.items():
            values = choice(arguments) if callable(choice) else choice
            if values:
                arguments[name] = stream.choice(values)
        drawn = {name: value for name, value in arguments.items() if registered.get(name) != value}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in drawn.items()}


def worlds(spec: SpaceSpec) -> Iterator[World]:
    """The worlds of the candidates, without end."""
    applications = spec.applications or APPLICATIONS
    if not any(template.application in applications for template in templates()):
        raise ArenaError(
            f"no fault can be generated on {', '.join(applications)}: choose from {', '.join(APPLICATIONS)}"
        )
    number = 0
    while True:
        stream = spec.stream("world", number)
        application = applications[number % len(applications)]
        load = stream.choice(_LOADS[_DRIVERS[application]]) if application in _DRIVERS else {}
        yield World(number, application, stream.randrange(2**31), spec.noise, load)
        number += 1


def candidates(spec: SpaceSpec, world: World, signatures: set[str]) -> Iterator[Incident]:
    """The candidates of one world that are none of those with these signatures, which are added."""
    for index in range(PER_WORLD):
        stream = spec.stream("candidate", world.number, index)
        for _ in range(_ATTEMPTS):
            incident = _draw(spec, world, stream)
            if incident is not None and signature(incident) not in signatures:
                signatures.add(signature(incident))
                yield incident
                break


def signature(incident: Incident) -> str:
    """What makes two incidents the same: application, faults, their arguments and their arrival.

    The seed, innocent changes and the load are no difference: who knows one of the two knows the other.
    """
    faults = [
        {"problem": part.problem, "arguments": dict(part.arguments), "returns": part.pause is not None}
        for part in incident.faults
        if not part.is_gone
    ]
    return json.dumps([incident.application, sorted(faults, key=lambda fault: json.dumps(fault, sort_keys=True))])


def _draw(spec: SpaceSpec, world: World, stream: random.Random) -> Incident | None:
    count = stream.randint(*spec.faults)
    fitting = [t for t in templates() if t.application == world.application]
    first = [t for t in fitting if not spec.level or t.level == spec.level]
    if not first:
        raise ArenaError(f"no fault of level {spec.level} can be generated on {world.application}")
    parts: list[FaultPart] = []
    targets: set[str] = set()
    for number in range(count):
        pool = _combinable(fitting) if number else _combinable(first) if count > 1 else first
        part = _part(pool, stream, targets, after=0.0 if not number else float(stream.randrange(15, 90, 5)))
        if part is None:
            return None
        parts.append(part)
    if stream.random() < _EARLIER:
        disturbances = [t for t in fitting if t.family in _DISTURBANCES]
        earlier = _part(disturbances, stream, targets, lasts=float(stream.randrange(40, 70, 5)))
        if earlier is not None:
            parts.insert(0, earlier)
    return Incident(world.application, tuple(parts), world.seed, world.noise, world.load)


def _combinable(pool: Sequence[Template]) -> list[Template]:
    """Faults that concern their target alone: those of nodes, quotas and DNS would change what the others do."""
    return [t for t in pool if t.entry.kind is not None and not t.entry.kind.affects_new_pods]


def _part(
    pool: Sequence[Template],
    stream: random.Random,
    targets: set[str],
    *,
    after: float = 0.0,
    lasts: float | None = None,
) -> FaultPart | None:
    """A fault on a component that none of the others concerns; None where none was drawn."""
    families = sorted({template.family for template in pool})
    if not families:
        return None
    family = stream.choice(families)
    template = stream.choice([each for each in pool if each.family == family])
    arguments = template.draw(stream)
    service = str(arguments.get("service", template.entry.arguments.get("service")))
    if component_stem(service) in targets:
        return None
    targets.add(component_stem(service))
    returns = lasts is None and stream.random() < _RETURNING
    if returns:
        return FaultPart(
            template.entry.id, arguments, after, float(stream.randrange(45, 90, 5)), float(stream.randrange(30, 60, 5))
        )
    return FaultPart(template.entry.id, arguments, after, lasts)


@cache
def templates() -> tuple[Template, ...]:
    """The registered faults that need nothing set up, on every application where they have targets.

    Of several problems of one class on one application the first is taken: generated arguments replace the others.
    """
    found: dict[tuple[type[Problem], str, str], Template] = {}
    for entry in ProblemRegistry().entries():
        kind = entry.kind
        if kind is None or not issubclass(kind, InjectedProblem) or not _is_generated(kind):
            continue
        if not {"app", "service"} <= entry.arguments.keys():
            continue
        for application in dict.fromkeys((entry.arguments["app"], *APPLICATIONS)):
            service = {**kind.varies_further, **kind.varies}.get("service")
            arguments = {**entry.arguments, "app": application}
            has_targets = bool(service(arguments) if callable(service) else service)
            own = application == entry.arguments["app"]
            if (own and isinstance(entry.arguments["service"], str)) or (callable(service) and has_targets):
                options = json.dumps(sorted(set(entry.arguments) - {"app", "service"}))
                known = found.get((kind, application, options))
                if known is None or (own and known.entry.arguments["app"] != application):
                    found[kind, application, options] = Template(entry, application, kind.level)
    return tuple(found.values())


def _is_generated(kind: type[InjectedProblem]) -> bool:
    return (
        kind.repairable
        and kind.set_up is Problem.set_up
        and not kind.extra_namespaces
        and kind.level not in _NOT_COMBINED
        and "embedded" in kind.runs_on
    )


@cache
def healthy_problem_of(application: str) -> str:
    """The id of the problem without a fault on an application."""
    for entry in ProblemRegistry().entries():
        if entry.kind is Noop and entry.arguments.get("app") == application:
            return entry.id
    raise ArenaError(f"{application} has no healthy problem to start from")
