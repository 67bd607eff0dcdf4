"""A healthy application fires no alerts."""

from __future__ import annotations

import httpx
import pytest

from srearena.cluster.launcher import start_embedded
from srearena.service.apps.base import Application
from srearena.service.apps.registry import all_applications

SETTLING = 600


@pytest.mark.parametrize("application", all_applications(), ids=lambda application: application.name)
@pytest.mark.daily_cases(3)
def test_an_application_under_load_fires_nothing_for_an_hour(application: Application) -> None:
    with start_embedded(in_process=True, speed=0, models=[application.folder]) as cluster:
        application.deploy(cluster)
        application.wait_until_ready(cluster)
        application.start_workload(cluster)
        cluster.wait(SETTLING + 3600)
        with httpx.Client(headers={"authorization": f"Bearer {cluster.telemetry.token}"}, timeout=60) as client:

            def ask(query: str) -> list[dict[str, object]]:
                answer = client.get(f"{cluster.telemetry.prometheus}/api/v1/query", params={"query": query})
                found: list[dict[str, object]] = answer.raise_for_status().json()["data"]["result"]
                return found

            assert ask("sum(rate(traces_span_metrics_calls_total[2m])) > 1"), "there is load"
            assert ask('count_over_time(ALERTS{alertstate="firing"}[1h])') == []
            assert client.get(f"{cluster.telemetry.alertmanager}/api/v2/alerts").json() == []
