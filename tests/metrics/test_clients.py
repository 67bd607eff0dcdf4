"""Client libraries people use work unchanged."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi
from tests.metrics.serving import served
from tests.metrics.test_api import NOW, Clock
from tests.promql.samples import dataset, loaded

client = pytest.importorskip("prometheus_api_client", reason="prometheus-api-client is not installed")


def test_prometheus_api_client() -> None:
    with served(PrometheusApi(loaded(dataset()), Clock())) as address:
        prometheus = client.PrometheusConnect(url=address)
        assert prometheus.check_prometheus_connection()
        assert "http_requests_total" in prometheus.all_metrics()
        assert prometheus.get_label_values("job") == ["api", "web"]
        assert len(prometheus.get_current_metric_value("up", {"job": "api"})) == 3
        start, end = (datetime.fromtimestamp(NOW - ago, UTC) for ago in (600, 0))
        (series,) = prometheus.custom_query_range("sum(rate(http_requests_total[5m]))", start, end, "60")
        assert len(series["values"]) == 11
        (raw,) = prometheus.get_metric_range_data("up", {"instance": "a:80"}, start, end)
        assert len(raw["values"]) == 40  # the left end of a range is excluded
        values = prometheus.get_metric_aggregation("up", ["max", "average"], start, end, "60")
        assert values["max"] == 1
        with pytest.raises(client.PrometheusApiClientException, match="parse error"):
            prometheus.custom_query("up{")
