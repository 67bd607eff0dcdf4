"""Family, difficulty and application of recorded incidents, in the words of the catalogue of live problems.

A recording of ours names the mechanism of its fault, which is a family of problems. Recordings of others are classified
by what their answer keys say: the kind of the object at fault, and the category of the fault.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

from srearena.ground_truth.model import GroundTruth

_LEVEL_OF_KIND = {
    "DNSChaos": "network",
    "HTTPChaos": "network",
    "IOChaos": "hardware",
    "Ingress": "network",
    "NetworkChaos": "network",
    "NetworkPolicy": "network",
    "Node": "node",
    "PodChaos": "virtualization",
    "StressChaos": "hardware",
    "TimeChaos": "hardware",
}
_LEVEL_OF_CATEGORY = {
    "application": "application",
    "change": "virtualization",
    "configuration": "virtualization",
    "configuration setting": "virtualization",
    "custom": "application",
    "network": "network",
    "resource": "virtualization",
    "resource saturation": "virtualization",
    "resource unavailable": "virtualization",
}
_FLAGS = "flagd"
"""The service of feature flags: its configuration switches faults of the applications' own code."""
_OTHER_NAMESPACES = {"otel-demo": "astronomy-shop"}
"""Namespaces under which others run the same applications."""


def classification(truth: GroundTruth) -> dict[str, str]:
    """Family, difficulty and application, as far as they are known. Shown after the runs, never to an agent."""
    namespaces = Counter(group.namespace for group in truth.groups if group.namespace)
    namespace = namespaces.most_common(1)[0][0] if namespaces else ""
    namespace = _OTHER_NAMESPACES.get(namespace, namespace)
    mechanism = next((fault.mechanism for fault in truth.faults if fault.mechanism), "")
    level, difficulty = _known(mechanism, namespace) if mechanism else ("", "")
    return {
        "family": level or _level(truth),
        "difficulty": difficulty,
        "application": _applications().get(namespace, namespace),
    }


def _level(truth: GroundTruth) -> str:
    for fault in truth.faults:
        if fault.kind in _LEVEL_OF_KIND:
            return _LEVEL_OF_KIND[fault.kind]
        if _FLAGS in (fault.name or ""):
            return "application"
        level = _LEVEL_OF_CATEGORY.get(fault.category.lower(), "")
        if level:
            return level
    return ""


def _known(mechanism: str, namespace: str) -> tuple[str, str]:
    """Level and difficulty of the family on that application, or as far as all problems of the family agree."""
    found = [facts for (family, _), facts in _catalogue().items() if family == mechanism]
    here = _catalogue().get((mechanism, namespace))
    if here is not None:
        return here
    levels, difficulties = ({facts[place] for facts in found} for place in (0, 1))
    return (levels.pop() if len(levels) == 1 else "", difficulties.pop() if len(difficulties) == 1 else "")


@cache
def _catalogue() -> dict[tuple[str, str], tuple[str, str]]:
    """Level and difficulty by family or id of problems, and namespace."""
    from srearena.conductor.problems.registry import ProblemRegistry  # slow to import, and workers do not need it

    registry = ProblemRegistry()
    catalogue: dict[tuple[str, str], tuple[str, str]] = {}
    for name in registry.get_problem_ids():
        problem = registry.get_problem(name)
        for key in (problem.family, problem.id):
            if key:
                catalogue.setdefault((key, problem.app.namespace), (problem.level, problem.difficulty))
    return catalogue


@cache
def _applications() -> dict[str, str]:
    from srearena.service.apps import all_applications

    return {app.namespace: app.name for app in all_applications()}
