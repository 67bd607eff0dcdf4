"""`EpisodeSpec`: how one episode is run. A value that is passed on unchanged from a command to the episode.

It says nothing about the problem and the agent, and it can be sent to another process as a JSON document.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from srearena.conductor.episode.limits import Limits
from srearena.config import Config, load_config

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


@dataclass(frozen=True, slots=True)
class Timeline:
    """Durations of the phases before the agent starts, in seconds of the cluster's time."""

    before: float = 300.0
    """Healthy operation under load, before the fault."""
    after: float = 240.0
    """Operation with the fault, before the agent starts."""
    deployment: float = 180.0
    """Upper bound for deploying the application; an embedded cluster starts this much earlier."""

    @property
    def total(self) -> float:
        return self.deployment + self.before + self.after

    def varied(self, stream: random.Random) -> Timeline:
        """The same timeline with other moments: a fault is not always equally long ago."""
        return replace(self, before=self.before * stream.uniform(*_BEFORE), after=self.after * stream.uniform(*_AFTER))


_BEFORE, _AFTER = (0.8, 1.2), (0.85, 1.2)
"""Bounds of the factors. Symptoms need most of the time after the fault, and a longer episode costs simulation time."""


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    seed: int = 0
    stages: tuple[str, ...] | None = None
    """The stages to run; None for all stages of the problem."""
    limits: Limits = field(default_factory=Limits)
    timeline: Timeline = field(default_factory=Timeline)
    noise: bool = False
    """Whether innocent changes, drawn from the seed, happen before and after the fault."""
    fixed: bool = False
    """Whether target, parameters and moment of the fault are the catalogue's own, instead of drawn from the seed."""
    read_only: bool = False
    """Whether the agent's identity may only read, whichever way it comes in."""
    in_process: bool = False
    """Whether an embedded cluster runs in this process instead of a child process."""
    start: float | None = None
    """The instant (seconds since the epoch) at which the agent starts, on an embedded cluster; None for now."""
    speed: float = 1.0
    """Seconds that pass on an embedded cluster per real second while the agent works; at 0, only waiting takes time."""
    config: Config | None = None
    """The cluster to run on; None for what `config.yml` says."""

    @property
    def backend(self) -> Config:
        """The configuration of the cluster to run on."""
        return self.config if self.config is not None else load_config()

    def pinned_by(self, problem: Problem) -> EpisodeSpec:
        """This value with what the problem decides itself: an incident in a file has its own seed."""
        return replace(self, **problem.pins)

    @property
    def phases(self) -> Timeline:
        """The timeline of this episode: varied by the seed unless it is fixed."""
        return self.timeline if self.fixed else self.timeline.varied(random.Random(f"{self.seed}:moment"))

    @property
    def variant(self) -> int | None:
        """The seed of the problem's target and parameters; None for the catalogue's own."""
        return None if self.fixed else self.seed

    def as_document(self) -> dict[str, Any]:
        config = self.config.model_dump() if self.config is not None else None
        return {**asdict(replace(self, config=None)), "config": config}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> EpisodeSpec:
        fields = dict(document)
        fields["limits"] = Limits(**fields["limits"])
        fields["timeline"] = Timeline(**fields["timeline"])
        fields["stages"] = tuple(fields["stages"]) if fields["stages"] is not None else None
        fields["config"] = Config(**fields["config"]) if fields["config"] is not None else None
        return cls(**fields)
