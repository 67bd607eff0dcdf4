"""The result document as types, for the published JSON Schema and for validation.

The evaluation writes plain dictionaries; these models describe them, and tests check that they agree.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Score = Annotated[float, Field(ge=0, le=1)]


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class PredictedEntity(_Open):
    entity: str
    also_named: list[str] = []
    matches_gt: bool
    matched_to: str | None
    component: str
    matched_by: str | None
    ambiguous_with: list[str] = []


class Graph(_Open):
    nodes: list[str]
    edges: list[tuple[str, str]]
    roots: list[str]


class Incident(_Open):
    """The truth of one incident, in components."""

    gt_entities: list[str]
    gt_graph: Graph
    first_impacted_component: str | None


class TrialDetails(_Open):
    predicted_entities: list[PredictedEntity]
    missed: list[str]
    wrongly_blamed: list[str]
    predicted_graph: Graph
    reasoning: list[dict[str, Any]]


class TrialResult(_Open):
    """One trial; there is one for every run found, readable or not."""

    incident_id: str
    trial_id: str
    scores: dict[str, dict[str, Any]] = Field(description="By criterion, in the nested shape of earlier tools.")
    flat_scores: dict[str, Score | None] = Field(description="By metric. Null only for metrics named in `excluded`.")
    bad_run: bool = Field(description="Nothing could be read: every score is 0 and `error` says why.")
    reasoning_source: str = Field(description="Who judged reasoning: `llm`, `lexical-v1` or `none`.")
    source_file: str
    error: str | None = None
    excluded: dict[str, str] = Field(default={}, description="Metrics without a value, each with the reason.")
    repairs: list[str] = []
    notes: list[str] = []
    judge: dict[str, Any] = {}
    details: TrialDetails


class Statistics(_Open):
    per_incident: dict[str, dict[str, Any]]
    overall: dict[str, Any]


class Config(_Open):
    ground_truth_path: str
    outputs_path: str
    eval_criteria: list[str]
    k: int
    policy: str
    judge: str
    baseline: str
    reasoning_source: str


class ResultDocument(_Open):
    """What `itbench-eval --result-file` writes."""

    model_config = ConfigDict(extra="allow", title="EvaluationResult")

    schema_version: str
    incidents: dict[str, Incident]
    raw_results: list[TrialResult]
    statistics: Statistics
    config: Config
    warnings: list[str]
    ungraded_incidents: list[str]
    incidents_without_trials: list[str]
    judge: dict[str, Any] | None = None
