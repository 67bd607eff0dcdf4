"""`Problem`: an application, a fault, and the oracles that grade the answers.

A problem does not own a cluster: the conductor attaches one before it calls any other method. A problem changes the
cluster only through the Kubernetes API or the cluster's `nodes`. A subclass sets `app`, `faulty_service` and its
oracles in `__init__`, which need not call the base class; everything else has a default.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from srearena.cluster import Cluster
from srearena.conductor.errors import ProblemError
from srearena.conductor.grading.known_objects import KnownObjects
from srearena.conductor.oracles.analysis import AnalysisOracle
from srearena.conductor.oracles.base import Oracle
from srearena.conductor.oracles.detection import DetectionOracle
from srearena.conductor.problems.metadata import (
    Difficulty,
    Entity,
    FaultType,
    Level,
    Origin,
    Summary,
    SystemLevel,
    usual_system_level,
)
from srearena.ground_truth import GroundTruth, Propagation
from srearena.service.apps.base import Application
from srearena.service.kubernetes import Kubernetes

if TYPE_CHECKING:
    from srearena.conductor.grading.baseline import Baseline
    from srearena.conductor.problems.variation import Choice


class Problem(ABC):
    """One incident. The class attributes describe a family; an instance may override any of them."""

    id: str = ""
    family: ClassVar[str] = ""
    level: Level = "virtualization"
    difficulty: Difficulty = "medium"
    runs_on: tuple[str, ...] = ("embedded", "kubernetes")
    fault_type: FaultType = "Misconfiguration"
    system_level: SystemLevel | None = None
    """None for the default of the level."""
    explanation: str = ""
    """The fault in a sentence or two, for the ground truth."""
    remedy: str = ""
    """A shell script of kubectl commands that repairs the system."""
    post_mortem: str = ""
    """The URL of a public report on a similar incident."""
    repairable: bool = True
    """Whether the fault can be repaired through the Kubernetes API; otherwise nothing may be broken in addition."""
    restart_is_a_remedy: bool = False
    """Whether restarting the right workload is a valid repair."""

    undone_by_recovery: bool = False
    """Whether restoring the changed objects is not enough: what was made from them has immutable fields."""
    data_is_lost: bool = False
    """Whether the fault destroyed the data of the faulty services, so that new claims are a repair."""
    varies: ClassVar[Mapping[str, Choice]] = {}
    """The constructor's arguments that a seed draws, each with its values; see `variation`."""
    varies_further: ClassVar[Mapping[str, Choice]] = {}
    """What generated incidents draw in addition: an id that names its target fixes it, and they have no such id."""
    load: Mapping[str, Any] = {}
    """Settings of the application's load that replace those of its `workload.yaml`."""
    pins: Mapping[str, Any] = {}
    """Settings of `EpisodeSpec` that the problem decides, whatever was asked for."""
    arrival_seconds: float = 0.0
    """How long the fault takes to arrive, beside the usual phases."""
    affects_new_pods: bool = False
    """Whether the fault also affects pods of other workloads that start while it lasts."""

    extra_namespaces: tuple[str, ...] = ()
    """Namespaces that the problem creates in addition to the application's."""

    app: Application
    faulty_service: str | list[str] | None = None
    localization_oracle: Oracle | None = None
    mitigation_oracle: Oracle | None = None
    fault_injected: bool = False
    injected_at: str = ""
    """The time of injection by the cluster's clock; set by the conductor."""

    _cluster: Cluster | None = None
    baseline: Baseline | None = None
    """The state of the cluster before the fault; set by the conductor."""
    handed_over: Baseline | None = None
    """The state of the cluster when the agent starts; set by the conductor."""
    known_objects: KnownObjects = KnownObjects()
    """The names of objects before the agent came in; set by the conductor."""
    stored_origins: Sequence[Origin] | None = None
    """The origins of a stored trial with another target, in place of the problem's own; set when it is regraded."""

    def attach(self, cluster: Cluster) -> None:
        """Attach a cluster; the conductor calls this first."""
        self._cluster = cluster
        self.__dict__.pop("kubernetes", None)

    @property
    def cluster(self) -> Cluster:
        if self._cluster is None:
            raise ProblemError(f"problem {self.id or type(self).__name__} has no cluster yet: attach one first")
        return self._cluster

    @cached_property
    def kubernetes(self) -> Kubernetes:
        """The harness's client for the cluster."""
        return Kubernetes.of(self.cluster)

    @property
    def namespace(self) -> str:
        return self.app.namespace

    @property
    def faulty_services(self) -> tuple[str, ...]:
        names = self.faulty_service
        if names is None:
            return ()
        return (names,) if isinstance(names, str) else tuple(names)

    def set_up(self) -> None:  # noqa: B027 - optional
        """Add what the problem needs to the healthy application; called before the baseline is captured."""

    @property
    def needs_set_up(self) -> bool:
        """Whether the healthy system is one of its own, because `set_up` adds to the application."""
        return type(self).set_up is not Problem.set_up

    @property
    def affected_components(self) -> frozenset[str]:
        """The names of objects that the fault changes, or whose pods would start differently while it lasts."""
        return frozenset(self.faulty_services)

    @property
    def changed_objects(self) -> frozenset[str]:
        """The names of the objects that the injected fault has created, edited or deleted."""
        return frozenset()

    @property
    def edited_workloads(self) -> tuple[str, ...]:
        """The workloads of the application whose pod template the injected fault has changed."""
        return ()

    @abstractmethod
    def inject_fault(self) -> None:
        """Inject the fault."""

    @abstractmethod
    def recover_fault(self) -> None:
        """Remove the fault."""

    # Ground truth for the oracles

    @property
    def origins(self) -> Sequence[Origin]:
        """The independent causes of the incident, each a group of accepted names: by default the faulty workloads."""
        return tuple(Origin((Entity("Deployment", name, self.namespace),)) for name in self.faulty_services)

    @property
    def roots(self) -> Sequence[Entity]:
        """The changed object of each origin that the ground truth names first."""
        return tuple(origin.changed[0] for origin in self.origins)

    @property
    def propagation(self) -> Sequence[tuple[Entity, Entity]]:
        return ()

    @property
    def ground_truth(self) -> GroundTruth:
        roots = dict.fromkeys(entity for origin in self.origins for entity in origin.members)
        affected = dict.fromkeys(entity for step in self.propagation for entity in step if entity not in roots)
        return GroundTruth(
            incident_id=self.id,
            format="problem",
            groups=(
                *(entity.as_group(root=True) for entity in roots),
                *(entity.as_group(root=False) for entity in affected),
            ),
            aliases=tuple(
                tuple(str(entity) for entity in origin.members) for origin in self.origins if len(origin.members) > 1
            ),
            propagations=tuple(Propagation(str(source), str(target)) for source, target in self.propagation),
            explanation=self.explanation,
            system_level=self.analysis_level,
            fault_type=self.fault_type,
        )

    @property
    def detection_oracle(self) -> Oracle:
        return DetectionOracle(self, expected=bool(self.faulty_services))

    @property
    def analysis_level(self) -> SystemLevel:
        """The answer to the analysis stage: as declared, or the default of the level."""
        return self.system_level or usual_system_level(self.level)

    @property
    def analysis_oracle(self) -> Oracle:
        return AnalysisOracle(self, self.analysis_level, self.fault_type)

    def oracle_for(self, stage: str) -> Oracle:
        """The oracle of a stage; ProblemError where there is none."""
        if stage == "noop":
            return DetectionOracle(self, expected=False)
        oracle = self._diagnosis_oracle if stage == "diagnosis" else getattr(self, f"{stage}_oracle", None)
        if not isinstance(oracle, Oracle):
            raise ProblemError(f"problem {self.id} has no oracle for its {stage} stage")
        return oracle

    @property
    def _diagnosis_oracle(self) -> Oracle:
        from srearena.conductor.oracles.diagnosis import DiagnosisOracle  # imports this module

        return DiagnosisOracle(self)

    def summary(self) -> Summary:
        return Summary(
            id=self.id,
            application=self.app.name,
            level=self.level,
            difficulty=self.difficulty,
            runs_on=self.runs_on,
            spoilers={
                "family": self.family or type(self).__name__,
                "faulty": list(self.faulty_services),
                "ground_truth": self.ground_truth.as_document(),
                "remedy": self.remedy,
                "restart_is_a_remedy": self.restart_is_a_remedy,
                "post_mortem": self.post_mortem,
            },
        )
