"""The format of a diagnosis, as types and as a published JSON Schema.

These models describe a *valid* submission. `submission` reads malformed ones; its results satisfy these models.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

EntityName = Annotated[
    str,
    Field(
        min_length=1,
        description="The object as `namespace/Kind/name`, without a UID; `Kind/name` for cluster-scoped objects.",
        examples=["otel-demo/Deployment/checkout", "Namespace/otel-demo"],
    ),
]


class DiagnosedEntity(BaseModel):
    """An object involved in the incident."""

    model_config = ConfigDict(extra="allow")

    name: EntityName
    contributing_factor: bool = Field(
        description="True only for an independent cause. If A explains B, B is false and there is a propagation A → B."
    )
    reasoning: str = Field(default="", description="Why it is, or is not, a cause: what was wrong with it.")
    evidence: str = Field(default="", description="What in the telemetry shows it.")


class DiagnosedPropagation(BaseModel):
    """One step by which the failure propagated from one object to another."""

    model_config = ConfigDict(extra="allow")

    source: EntityName
    target: EntityName
    condition: str = Field(default="", description="The state of the source that made it happen.")
    effect: str = Field(default="", description="What happened to the target.")


class ExplainedAlert(BaseModel):
    """An alert and whether the diagnosis accounts for it."""

    model_config = ConfigDict(extra="allow")

    alert: str
    explanation: str = ""
    explained: bool = True


class AgentOutput(BaseModel):
    """A diagnosis: `agent_output.json`."""

    model_config = ConfigDict(extra="allow", title="AgentOutput")

    entities: list[DiagnosedEntity] = Field(description="Most important first; the order decides the @k metrics.")
    propagations: list[DiagnosedPropagation] = Field(description="From the cause to what users noticed.")
    alerts_explained: list[ExplainedAlert]

    @classmethod
    def empty(cls) -> AgentOutput:
        return cls(entities=[], propagations=[], alerts_explained=[])
