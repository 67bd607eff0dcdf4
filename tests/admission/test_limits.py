"""LimitRanger: what it fills in, and in which words it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from .door import Door, container, pod


def limit(door: Door, *items: dict[str, Any], name: str = "limits") -> None:
    door.let_in("limitranges", {"metadata": {"name": name}, "spec": {"limits": list(items)}})


@pytest.mark.parametrize(
    ("bounds", "requests", "limits", "problem"),
    [
        (
            {"min": {"cpu": "100m"}},
            {"cpu": "50m"},
            {},
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (
            {"max": {"memory": "1Gi"}},
            {},
            {"memory": "2Gi"},
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "100m"},
            {"cpu": "250m"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 2.500000",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"cpu": "100m"},
            {},
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {},
            {},
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            {"min": {"cpu": "1"}, "max": {"memory": "1Gi"}},
            {"cpu": "500m"},
            {"memory": "2Gi"},
            "[minimum cpu usage per Container is 1, but request is 500m, "
            "maximum memory usage per Container is 1Gi, but limit is 2Gi]",
        ),
    ],
)
def test_a_container_out_of_bounds(
    door: Door, bounds: dict[str, Any], requests: dict[str, str], limits: dict[str, str], problem: str
) -> None:
    limit(door, {"type": "Container", **bounds})
    assert door.refuse("pods", pod("p", container("c", requests, limits))) == f'pods "p" is forbidden: {problem}'


def test_a_pod_is_judged_as_a_whole_with_its_greediest_init_step(door: Door) -> None:
    limit(door, {"type": "Pod", "max": {"cpu": "1"}})
    fine = container("c", {"cpu": "100m"}, {"cpu": "600m"})
    greedy = container("setup", {"cpu": "100m"}, {"cpu": "2"})
    assert door.refuse("pods", pod("p", fine, initContainers=[greedy])) == (
        'pods "p" is forbidden: maximum cpu usage per Pod is 1, but limit is 2'
    )
    assert door.refuse("pods", pod("p", container("c"))) == (
        'pods "p" is forbidden: maximum cpu usage per Pod is 1.  No limit is specified'
    )


def test_a_claim_out_of_bounds(door: Door) -> None:
    limit(door, {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}})

    def claim(size: str) -> dict[str, Any]:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return {"metadata": {"name": "data"}, "spec": spec}

    forbidden = 'persistentvolumeclaims "data" is forbidden: '
    assert door.refuse("persistentvolumeclaims", claim("20Gi")) == (
        forbidden + "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 20Gi"
    )
    assert door.refuse("persistentvolumeclaims", claim("1Mi")) == (
        forbidden + "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"
    )


def test_defaults_are_filled_in_and_noted(door: Door) -> None:
    limit(door, {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}})
    admitted = door.let_in("pods", pod("p", container("c"), initContainers=[container("i", limits={"cpu": "2"})]))
    assert admitted["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c; "
        "memory request for init container i; memory limit for init container i"
    )
    assert admitted["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "100m", "memory": "1Gi"},
    }


def test_the_first_limit_range_that_objects_speaks_alone(door: Door) -> None:
    limit(door, {"type": "Container", "max": {"cpu": "1"}}, name="a")
    limit(door, {"type": "Container", "max": {"memory": "1Gi"}}, name="b")
    refused = door.refuse("pods", pod("p", container("c", limits={"cpu": "2", "memory": "2Gi"})))
    assert refused == 'pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 2'
