"""`srearena up`, `top` and `down`, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest


def srearena(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SREARENA_STATE_DIR": str(state)}
    command = [sys.executable, "-m", "srearena", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("state")
    yield folder
    srearena(folder, "down", "--all")


@pytest.fixture(scope="module")
def facts(state: Path) -> dict[str, str]:
    done = srearena(state, "up", "hotel_reservation", "--detach", "--json", "--history", "300", "--seed", "3")
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_an_application_comes_up_with_load_and_a_past(facts: dict[str, str]) -> None:
    assert facts["namespace"] == "hotel-reservation"
    assert Path(facts["kubeconfig"]).is_file()
    token = {"Authorization": f"Bearer {facts['token']}"}
    query = 'sum(rate(traces_span_metrics_calls_total{service_name="frontend",span_kind="SPAN_KIND_SERVER"}[2m]))'
    answer = httpx.get(f"{facts['prometheus']}/api/v1/query", params={"query": query}, headers=token)
    (series,) = answer.json()["data"]["result"]
    assert 80 < float(series["value"][1]) < 120, "wrk2 sends a hundred requests a second"
    services = httpx.get(f"{facts['jaeger']}/api/services", headers=token).json()["data"]
    assert {"frontend", "search", "geo", "rate"} <= set(services)


def test_telemetry_asks_for_the_token(facts: dict[str, str]) -> None:
    assert httpx.get(f"{facts['prometheus']}/api/v1/query", params={"query": "up"}).status_code == 401


def test_the_root_of_every_address_leads_to_the_view(facts: dict[str, str]) -> None:
    for program in ("prometheus", "loki", "jaeger", "alertmanager"):
        answer = httpx.get(facts[program])
        assert answer.status_code == 200, program
        assert answer.headers["content-type"].startswith("text/html")
        assert f"<code>srearena view {facts['name']}</code>" in answer.text
        assert facts["token"] not in answer.text


def test_top_shows_the_services(state: Path, facts: dict[str, str]) -> None:
    done = srearena(state, "top", "--once")
    assert done.returncode == 0, done.stderr
    assert "frontend" in done.stdout and "hotel-reservation: " in done.stdout
    shown = json.loads(srearena(state, "top", facts["name"], "--json").stdout)
    assert {row["service"] for row in shown["services"]} >= {"frontend", "profile"}


def test_a_typo_gets_the_nearest_name(state: Path) -> None:
    done = srearena(state, "up", "hotel_reservaton")
    assert done.returncode != 0
    assert "hotel-reservation" in done.stderr and "Traceback" not in done.stderr


def test_down_ends_it(state: Path, facts: dict[str, str]) -> None:
    assert srearena(state, "down", facts["name"]).returncode == 0
    done = srearena(state, "top")
    assert done.returncode != 0 and "srearena up" in done.stderr
