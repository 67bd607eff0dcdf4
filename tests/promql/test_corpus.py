"""The same samples and the same queries give the same answers as the real Prometheus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi
from tests.promql.corpus import INSTANTS, MISTAKES, Question, compact, differences, fetch, queries, questions, recorded
from tests.promql.random_queries import RandomQueries
from tests.promql.real_prometheus import BINARY, RealPrometheus, running, version
from tests.promql.samples import dataset, loaded

NEWER = ("stddev without () (weird)", "histogram_fraction")
"""What changed between the versions, besides ranges: the deviation of a single infinite element is NaN now, and
histogram_fraction takes classic histograms."""


@dataclass
class StoppedClock:
    now: float


@pytest.fixture(scope="module")
def api() -> PrometheusApi:
    return PrometheusApi(loaded(dataset()), StoppedClock(INSTANTS[-1] / 1000))


@pytest.fixture(scope="module")
def installed_api() -> PrometheusApi:
    """The API as the major version of Prometheus that is installed."""
    return PrometheusApi(loaded(dataset()), StoppedClock(INSTANTS[-1] / 1000), version=version())


@pytest.fixture(scope="module")
def answers() -> dict[str, list[Any]]:
    return recorded()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    with running(tmp_path_factory.mktemp("prometheus")) as found:
        found.write(dataset())
        yield found


def ask(api: PrometheusApi, question: Question) -> dict[str, Any]:
    params = {name: [value] for name, value in question.parameters.items()}
    _, _, body = api.handle("GET", f"/api/v1/{question.path}", params)
    found: dict[str, Any] = orjson.loads(body)
    return found


def test_the_corpus_is_large_and_recorded_whole(answers: dict[str, list[Any]]) -> None:
    assert len(queries()) >= 300
    assert list(answers) == sorted(set(queries()))


@pytest.mark.parametrize("query", queries())
def test_the_answer_is_the_recorded_one(api: PrometheusApi, answers: dict[str, list[Any]], query: str) -> None:
    for number, at in enumerate((*INSTANTS, None)):
        question = Question(query, at)
        found = differences(compact(ask(api, question), question.is_ordered), answers[query][number])
        assert not found, f"{query} at {at}: {found}"


@pytest.mark.parametrize("query", json.loads(MISTAKES.read_text()))
def test_a_mistake_is_named_in_the_real_servers_words(api: PrometheusApi, query: str) -> None:
    status, _, body = api.handle("GET", "/api/v1/query", {"query": [query]})
    assert (status, orjson.loads(body)["error"]) == (400, json.loads(MISTAKES.read_text())[query])


INSTALLED = pytest.mark.skipif(
    BINARY is None, reason="Prometheus is not installed (Debian: apt-get install prometheus; or set PROMETHEUS)"
)


@INSTALLED
def test_an_installed_prometheus_gives_our_answers(installed_api: PrometheusApi, server: RealPrometheus) -> None:
    """One of version 2 is compared with the behaviour of version 2."""
    for question in questions():
        ours, real = compact(ask(installed_api, question), question.is_ordered), fetch(server, question)
        if version() == 2 and ("error" in real or question.query.startswith(NEWER)):
            continue  # the words of messages are those of version 3
        assert not differences(ours, real), question.query


@INSTALLED
def test_an_installed_prometheus_3_gives_the_recorded_messages(server: RealPrometheus) -> None:
    if version() < 3:
        pytest.skip("the installed Prometheus is older than version 3")
    for query, message in json.loads(MISTAKES.read_text()).items():
        assert server.ask("query", query=query, time="1")["error"] == message


@INSTALLED
def test_random_queries_are_answered_alike(installed_api: PrometheusApi, server: RealPrometheus) -> None:
    chance = RandomQueries(seed=11)
    for _ in range(400):
        query = chance.one()
        for at in (INSTANTS[0], None):
            question = Question(query, at)
            ours, theirs = compact(ask(installed_api, question), question.is_ordered), fetch(server, question)
            if all("error" in answer for answer in (ours, theirs)) and (
                version() == 2 or "found duplicate series" in theirs["error"]
            ):
                continue  # any two of them may be named
            assert not differences(ours, theirs), query
