"""One attempt as a message to a worker on this or another machine, without the ground truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from itbench_leaderboard.config import AgentTable
from itbench_leaderboard.incidents import Incident
from srearena.conductor.episode.spec import EpisodeSpec


@dataclass(frozen=True, slots=True)
class Job:
    """Everything a worker needs for one attempt."""

    agent_name: str
    agent: dict[str, Any]
    incident: Incident
    number: int
    workspace: str
    timeout: float
    seed: int = 0
    collect_traces: bool = False
    stages: tuple[str, ...] = ()
    max_cost: float | None = field(default=None)

    @property
    def table(self) -> AgentTable:
        return AgentTable.model_validate(self.agent)

    @property
    def spec(self) -> EpisodeSpec:
        """The episode of a live problem, without limits: those depend on what kind of agent it is."""
        return EpisodeSpec(self.seed, self.stages or None)

    @property
    def label(self) -> str:
        return f"{self.agent_name} / {self.incident.name} / {self.number}"

    def as_document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Job:
        fields = {**document, "incident": Incident(**document["incident"]), "stages": tuple(document["stages"])}
        return cls(**fields)
