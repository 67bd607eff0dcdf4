"""Named suites of problems for `srearena run --suite`.

`lite` is a list with a version: a list that is published is never changed, a better one gets the next number. The other
suites follow the catalogue, so their version is that of the package.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from typing import get_args

from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.metadata import Level
from srearena.conductor.problems.registry import ProblemRegistry

_LITE = {
    # Every level, application and difficulty; three healthy systems, so that false alarms count.
    1: (
        "k8s_target_port-misconfig",
        "scale_pod_zero_social_net",
        "missing_configmap_social_network",
        "auth_miss_mongodb",
        "noop_social_network",
        "wrong_service_selector_hotel_reservation",
        "revoke_auth_mongodb-1",
        "cfs_cpu_throttling_hotel_reservation",
        "network_policy_block",
        "node_conntrack_exhaustion_hotel_reservation",
        "latent_sector_error",
        "faulty_image_correlated",
        "noop_hotel_reservation",
        "capacity_decrease_rpc_retry_storm",
        "astronomy_shop_payment_service_failure",
        "astronomy_shop_cart_service_failure",
        "stale_coredns_config_astronomy_shop",
        "kubelet_crash",
        "operator_overload_replicas",
        "trainticket_f17_nested_sql_select_clause_error",
        "noop_online_boutique",
    ),
}


@dataclass(frozen=True, slots=True)
class ProblemSuite:
    """A suite as it is now."""

    name: str
    """With its version, such as `lite@1`."""
    problems: tuple[str, ...]


def suite_names() -> list[str]:
    return ["lite", "full", "noop", *(level for level in get_args(Level) if level != "none")]


def problem_suite(name: str) -> ProblemSuite:
    """Find a suite by name, `lite@1` for a version of it; ArenaError where there is none."""
    base, _, number = name.partition("@")
    if base == "lite" and (not number or (number.isdecimal() and int(number) in _LITE)):
        chosen = int(number) if number else max(_LITE)
        return ProblemSuite(f"lite@{chosen}", _LITE[chosen])
    if base not in suite_names() or number:
        near = difflib.get_close_matches(base, suite_names(), n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(suite_names())}"
        raise ArenaError(f"there is no suite {name!r}: {hint}")
    level = "none" if base == "noop" else base
    registry = ProblemRegistry()
    ids = tuple(
        each for each in registry.get_problem_ids() if base == "full" or registry.get_problem(each).level == level
    )
    return ProblemSuite(f"{base}@{installed_version('srearena')}", ids)
