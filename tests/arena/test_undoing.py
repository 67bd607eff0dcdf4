"""Undoing what a key names repairs: proved for a slice of the families that changes every day.

Within `PARTS` days every family is proved. SREARENA_SEED repeats a day's selection; `scripts/test --all-problems`
proves all problems.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence

import pytest

from srearena.conductor.problems.metadata import Entity, Origin
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.problems.resources import NamespaceMemoryLimit
from srearena.conductor.problems.services import WrongServiceSelector
from srearena.conductor.validity.undoing import check_origins
from tests.arena.episodes import SHOP
from tests.arena.test_validity import everything, families
from tests.selection import all_problems, rotating_slice, rotation_seed

PARTS = 30
"""Days after which every family has had its turn: three or four proofs fit in a minute."""


def chosen() -> list[str]:
    registry = ProblemRegistry()
    names = [name for name in everything() if registry.get_problem(name).level != "none"]
    return names if all_problems() else rotating_slice(families(names), PARTS, rotation_seed())


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """Collect garbage: a cluster has reference cycles."""
    yield
    gc.collect()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", chosen())
def test_undoing_the_named_roots_repairs(name: str) -> None:
    result = check_origins(ProblemRegistry().get_problem(name))
    assert not result.complaints, result.changed


class WrongKey(WrongServiceSelector):
    """The Service was changed, and the key names a workload that nobody touched."""

    @property
    def origins(self) -> Sequence[Origin]:
        return (Origin((Entity("Deployment", "store", self.namespace),)),)


class HalfAKey(NamespaceMemoryLimit):
    """The quota was added, and the key names something else as well."""

    also_changed = ("ConfigMap/settings",)


def test_a_key_that_names_something_else_is_found_out() -> None:
    result = check_origins(WrongKey(app=SHOP, service="api"))
    service = "corner-shop/Service/api"
    assert result.changed == {service: "changed"}
    assert "corner-shop/Deployment/store is named and was not changed" in result.complaints
    assert f"undoing {service} alone repairs, and the key does not name it" in result.complaints


def test_a_key_that_names_too_much_is_found_out() -> None:
    result = check_origins(HalfAKey(app=SHOP, service="api"))
    assert result.complaints == ["corner-shop/ConfigMap/settings is named and was not changed"]


class Twofold(WrongServiceSelector):
    """The selector is wrong, an innocent label was added elsewhere, and the key names both as origins."""

    def inject_fault(self) -> None:
        super().inject_fault()
        self.kubernetes.patch("services", "store", {"metadata": {"labels": {"team": "a"}}}, self.namespace)

    @property
    def origins(self) -> Sequence[Origin]:
        named = Entity("Service", "api", self.namespace), Entity("Service", "store", self.namespace)
        return tuple(Origin((entity,)) for entity in named)


def test_an_origin_that_is_not_needed_is_found_out() -> None:
    result = check_origins(Twofold(app=SHOP, service="api"))
    assert result.complaints == [
        "corner-shop/Service/store is named as an origin, repairs nothing alone, and is not needed beside the others"
    ]
