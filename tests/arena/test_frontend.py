"""The frontend check grades the success and the latency of requests."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from srearena.conductor.oracles.checks.frontend import FrontendAvailability
from srearena.conductor.oracles.checks.response_shape import common, features, lacking
from srearena.service.frontend import Objectives, ProbeResult, SampleRequest

HOME = SampleRequest("/")


class StubFrontend:
    """Responds with latencies from a repeating list; None for no response."""

    requests = (HOME,)

    def __init__(self, *times: float | None) -> None:
        self._times = times
        self._visits = 0

    def probe(self, api: object, namespace: str, request: SampleRequest) -> ProbeResult:
        took = self._times[self._visits % len(self._times)]
        self._visits += 1
        return ProbeResult(request, 0, "") if took is None else ProbeResult(request, 200, "", took)


def complaints(frontend: StubFrontend, healthy: float = 0.1, shape: Sequence[str] = ()) -> list[str]:
    problem: Any = SimpleNamespace(
        app=SimpleNamespace(frontend=frontend, objectives=Objectives(0.9, p95_seconds=0.5)),
        kubernetes=None,
        namespace="shop",
        cluster=SimpleNamespace(wait=lambda seconds: None),
        baseline=SimpleNamespace(facts={"frontend": {str(HOME): {"seconds": healthy, "shape": shape}}}),
    )
    return FrontendAvailability(window=100).complaints(problem)


@pytest.mark.parametrize("times", [(0.1,), (0.4, 0.6), (0.9,), (*[0.1] * 20, 4.0)])
def test_what_keeps_to_the_promise_is_fine(times: tuple[float, ...]) -> None:
    assert complaints(StubFrontend(*times)) == []


@pytest.mark.parametrize("times", [(1.5,), (0.1, 0.1, 0.1, 4.0)])
def test_answers_that_come_too_late_are_a_complaint(times: tuple[float, ...]) -> None:
    (complaint,) = complaints(StubFrontend(*times))
    assert "95th percentile" in complaint and "the objective is 0.5 s" in complaint


def test_what_was_slow_on_healthy_days_is_no_fault() -> None:
    assert complaints(StubFrontend(1.5), healthy=1.2) == []


def test_no_answer_is_a_complaint_of_its_own() -> None:
    (complaint,) = complaints(StubFrontend(None, 0.1))
    assert "GET / answered nothing" in complaint


def test_an_answer_of_another_shape_is_a_complaint() -> None:
    (complaint,) = complaints(StubFrontend(0.1), shape=["title 'Home'"])
    assert "GET / answered without title 'Home'" in complaint


HOTELS = '{"type": "Collection", "features": [{"id": 1, "name": "Clift", "tags": []}, {"id": 2, "name": "W"}]}'


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (HOTELS, False),
        ('{"type": "Collection", "features": [{"id": 9, "name": "Other", "stars": 3}]}', False),
        ('{"type": "Collection", "features": []}', False),
        ('{"type": "Collection", "features": {}}', False),
        ('{"type": "Collection", "features": [{"id": 9}]}', True),
        ('{"type": "Collection"}', True),
        ('{"message": "ok"}', True),
        ("{}", True),
        ("[]", True),
        ("ok", True),
        ("<html><title>Home</title></html>", True),
    ],
)
def test_a_shape_is_about_fields_not_values(text: str, missing: bool) -> None:
    shape = common([features(HOTELS, "application/json"), features(HOTELS, "application/json; charset=utf-8")])
    assert bool(lacking(shape, text, "application/json")) is missing


@pytest.mark.parametrize(
    ("healthy", "text", "missing"),
    [
        ("open\n", "open", False),
        ("order 12 accepted", "order 7 accepted", False),
        ("open", "ok", True),
        ("<title>Shop</title><form>", "<title>Shop</title><form><p>", False),
        ("<title>Shop</title><form>", "<title>Shop</title>", True),
        ("<title>Shop</title>", "<title>Welcome to nginx!</title>", True),
        ("[]", "{}", False),
        ('[{"id": 1}]', "{}", False),
        ('[{"id": 1}]', '[{"name": "a"}]', True),
    ],
)
def test_shapes_of_pages_texts_and_lists(healthy: str, text: str, missing: bool) -> None:
    assert bool(lacking(common([features(healthy, "")]), text, "")) is missing


def test_the_media_type_is_part_of_the_shape() -> None:
    shape = common([features("{}", "application/json")])
    assert lacking(shape, "{}", "text/plain") == ["media type application/json"]


@pytest.mark.parametrize("empty", ["[]", "{}"])
def test_what_was_empty_may_have_items_later_and_the_reverse(empty: str) -> None:
    """A server in Lua writes an empty list as an empty object."""
    posts = '[{"post_id": 7, "text": "hello"}]'
    assert lacking(common([features(posts, "application/json")]), empty, "application/json") == []
    assert lacking(common([features(empty, "application/json")]), posts, "application/json") == []


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, '{"a":' * 100_000, "<title>" * 20_000 + "<title"])
def test_a_text_that_is_made_to_stop_its_reader_has_another_shape(text: str) -> None:
    assert lacking(common([features('{"open": true}', "")]), text, "")


def test_a_document_of_many_levels_is_compared_in_its_upper_ones() -> None:
    nested = '{"a":' * 900 + "1" + "}" * 900
    assert lacking(common([features(nested, "")]), nested, "") == []
