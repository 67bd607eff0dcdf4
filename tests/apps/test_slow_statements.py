"""Slow statements, seen where an administrator of the database looks."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from srearena.service.apps.registry import find_application
from tests.apps.deployed import Deployed, deployed

RAILWAY = "train-ticket"


@pytest.fixture(scope="module")
def railway() -> Iterator[Deployed]:
    """Train Ticket, whose voucher service has begun to send a nested query before every voucher."""
    with deployed("train-ticket", models=[find_application("train-ticket").folder]) as running:
        running.wait(60)
        text = running.api.get("configmaps", "flagd-config", RAILWAY)["data"]["flags.yaml"]
        head, mark, tail = text.partition("tt-feat-17:")
        changed = head + mark + tail.replace("defaultVariant: 'off'", "defaultVariant: 'on'", 1)
        running.api.patch("configmaps", "flagd-config", {"data": {"flags.yaml": changed}}, RAILWAY)
        running.wait(240)
        yield running


def on_leader(railway: Deployed, *command: str) -> str:
    subsets = railway.api.get("endpoints", "tsdb-mysql-leader", RAILWAY)["subsets"]
    leader = subsets[0]["addresses"][0]["targetRef"]["name"]
    result = railway.api.exec(leader, list(command), RAILWAY, container="mysql")
    assert result.status == 0, result.errors
    return result.output


def mysql(railway: Deployed, statement: str) -> list[list[str]]:
    return [line.split("\t") for line in on_leader(railway, "mysql", "-N", "-uroot", "-e", statement).splitlines()]


def slow_statements(railway: Deployed) -> dict[str, int]:
    """Ages of the running ones, by connection."""
    rows = [row for row in mysql(railway, "SHOW FULL PROCESSLIST") if "information_schema.columns" in row[7]]
    assert all((row[1], row[3], row[4], row[6]) == ("ts", "ts", "Query", "executing") for row in rows)
    return {row[0]: int(row[5]) for row in rows}


def test_the_process_list_shows_it_with_its_age(railway: Deployed) -> None:
    grown = []
    before: dict[str, int] = {}
    for _ in range(30):
        listed = slow_statements(railway)
        assert all(0 <= age <= 15 for age in listed.values())
        grown += [age - before[connection] for connection, age in listed.items() if connection in before]
        before = listed
        railway.wait(1)
    assert grown.count(1) + grown.count(2) >= 3, "it is seen more than once while it runs"


def test_it_takes_the_processor_of_its_database(railway: Deployed) -> None:
    used = 'rate(container_cpu_usage_seconds_total{namespace="train-ticket",container="mysql"}[3m])'
    answer = httpx.get(
        f"{railway.cluster.telemetry.prometheus}/api/v1/query",
        params={"query": used},
        headers={"authorization": f"Bearer {railway.cluster.telemetry.token}"},
    ).json()
    cores = {row["metric"]["pod"]: float(row["value"][1]) for row in answer["data"]["result"]}
    leader = max(cores, key=lambda pod: cores[pod])
    endpoints = railway.api.get("endpoints", "tsdb-mysql-leader", RAILWAY)["subsets"]
    assert leader == endpoints[0]["addresses"][0]["targetRef"]["name"]
    assert 0.3 < cores[leader] < 0.5, "one thread of the voucher service sends one after the other"


def test_the_digests_rank_it_first(railway: Deployed) -> None:
    table = "performance_schema.events_statements_summary_by_digest"
    [first, *others] = mysql(
        railway, f"SELECT DIGEST_TEXT, COUNT_STAR, AVG_TIMER_WAIT FROM {table} ORDER BY SUM_TIMER_WAIT DESC"
    )
    assert "information_schema . columns" in first[0]
    assert int(first[1]) >= 5
    assert float(first[2]) > 8e12  # picoseconds
    assert any("contacts" in text for text, *_ in others), "the ordinary statements are counted, too"


def test_the_slow_log_and_its_container_have_it(railway: Deployed) -> None:
    """my.cnf of the application switches the log on, from two seconds; a container beside the server prints it."""
    path = mysql(railway, "SELECT @@slow_query_log_file")[0][0]
    before = on_leader(railway, "cat", path).count("# Query_time: ")
    counted = int(mysql(railway, "SHOW GLOBAL STATUS LIKE 'Slow_queries'")[0][1])
    assert counted >= before >= 5
    railway.wait(60)
    log = on_leader(railway, "cat", path)
    assert 2 <= log.count("# Query_time: ") - before <= 60
    assert log.count("a.column_name") >= 0.9 * log.count("# Query_time: ")
    mysql(railway, "SET GLOBAL slow_query_log = OFF")
    railway.wait(30)
    later = on_leader(railway, "cat", path).count("# Query_time: ")
    railway.wait(60)
    assert on_leader(railway, "cat", path).count("# Query_time: ") == later
    assert int(mysql(railway, "SHOW GLOBAL STATUS LIKE 'Slow_queries'")[0][1]) > counted
