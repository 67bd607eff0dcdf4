"""Jaeger, the Collector, OpenSearch and Grafana inside the cluster tell the story that the harness's addresses tell."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from srearena.service.apps.registry import find_application
from srearena.service.kubernetes import Reply
from tests.apps.deployed import Deployed, deployed, empty_cluster
from tests.apps.texts import texts

SHOP = "astronomy-shop"
HOTEL = "hotel-reservation"
JAEGER = "/jaeger/ui"
JSON = {"content-type": "application/json"}
TRACE = "5b8efff798038103d269b633813fc60c"


@pytest.fixture(scope="module")
def shop() -> Iterator[Deployed]:
    with deployed(SHOP, models=[find_application(SHOP).folder]) as running:
        running.wait(90)
        yield running


@pytest.fixture(scope="module")
def hotel() -> Iterator[Deployed]:
    with deployed(HOTEL, models=[find_application(HOTEL).folder]) as running:
        assert running.application is not None
        running.application.start_workload(running.cluster)
        running.wait(60)
        yield running


def harness(running: Deployed, path: str) -> Any:
    endpoints = running.cluster.telemetry
    headers = {"authorization": f"Bearer {endpoints.token}"}
    return httpx.get(f"{endpoints.jaeger}{path}", headers=headers, timeout=60).json()


def ask(running: Deployed, service: str, port: int, path: str, **options: Any) -> Reply:
    namespace = SHOP if running.application and running.application.namespace == SHOP else HOTEL
    return running.api.request_service(service, port, path, namespace, **options)


def pod_of(running: Deployed, namespace: str, prefix: str) -> str:
    return next(name for name in sorted(running.pods(namespace)) if name.startswith(prefix))


def series(text: str, name: str) -> dict[str, float]:
    rows = (line.rpartition(" ") for line in text.splitlines() if line.startswith(f"{name}{{"))
    return {labels: float(value) for labels, _, value in rows}


def search(running: Deployed, path: str, body: Any = None, method: str = "POST") -> Any:
    reply = ask(running, "opensearch", 9200, path, method=method, body=json.dumps(body).encode(), headers=JSON)
    return json.loads(reply.text) | {"_http": reply.status}


REVEALING = re.compile(r"simulat|sregym|aiopslab|srearena|\bharness|virtual time|not modelled", re.IGNORECASE)


def test_no_text_of_a_running_system_names_the_simulator(hotel: Deployed) -> None:
    assembly = hotel.cluster._thread.host.assembly  # type: ignore[attr-defined]
    kinds: Counter[str] = Counter()
    revealing = []
    for place, text in texts(assembly):
        kinds[place.partition(" ")[0]] += len(text)
        found = REVEALING.search(text)
        if found is not None:
            revealing.append(f"{place}: {text[max(0, found.start() - 60) : found.end() + 40]}")
    assert revealing == []
    assert all(kinds[kind] for kind in ("pods", "labels", "help", "spans", "log", "process", "/etc/passwd"))


# Exporters that users deploy


def test_exporters_in_the_cluster_expose_what_prometheus_scraped() -> None:
    with empty_cluster(nodes=1) as running:
        for name, image in (
            ("node-exporter", "prom/node-exporter:v1.8.2"),
            ("state", "registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.16.0"),
        ):
            spec = {"containers": [{"name": "main", "image": image}]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
            running.api.create(pod)
        running.wait(60)
        node = running.api.request_pod("node-exporter", 9100, "/metrics", "default").text
        lines = (line.rpartition(" ") for line in node.splitlines() if not line.startswith("#"))
        metrics = {name: float(value) for name, _, value in lines}
        endpoints = running.cluster.telemetry
        place = running.api.get("pods", "node-exporter", "default")["spec"]["nodeName"]
        found = httpx.get(
            f"{endpoints.prometheus}/api/v1/query",
            params={"query": f'node_boot_time_seconds{{instance="{place}"}}'},
            headers={"authorization": f"Bearer {endpoints.token}"},
        ).json()["data"]["result"]
        assert metrics["node_boot_time_seconds"] == float(found[0]["value"][1])
        state = running.api.request_pod("state", 8080, "/metrics", "default").text
        assert "kube_pod_info{" in state and 'pod="node-exporter"' in state and "job=" not in state.partition("\n")[0]
        assert running.api.request_pod("state", 8080, "/healthz", "default").text == "OK"
        assert running.api.request_pod("node-exporter", 9100, "/nothing", "default").status == 404


# Jaeger 1, in Hotel Reservation


def test_jaeger_in_the_cluster_has_the_traces_of_the_harness(hotel: Deployed) -> None:
    services = json.loads(ask(hotel, "jaeger", 16686, "/api/services").text)["data"]
    assert services == harness(hotel, "/api/services")["data"] and "frontend" in services
    query = "/api/traces?service=frontend&limit=5"
    inside = json.loads(ask(hotel, "jaeger", 16686, query).text)["data"]
    assert len(inside) == 5 and inside == harness(hotel, query)["data"]
    missing = ask(hotel, "jaeger", 16686, "/api/traces/1234")
    assert missing.status == 404 and json.loads(missing.text)["errors"][0]["msg"] == "trace not found"
    assert "<title>Jaeger UI</title>" in ask(hotel, "jaeger", 16686, "/search").text


def test_jaegers_admin_server_counts_the_spans_of_the_traffic(hotel: Deployed) -> None:
    assert json.loads(ask(hotel, "jaeger", 14269, "/").text)["status"] == "Server available"

    def received() -> float:
        text = ask(hotel, "jaeger", 14269, "/metrics").text
        return sum(series(text, "jaeger_collector_spans_received_total").values())

    traces = json.loads(ask(hotel, "jaeger", 16686, "/api/traces?service=frontend&limit=100000").text)["data"]
    before = received()
    assert before >= sum(len(trace["spans"]) for trace in traces) > 0
    hotel.wait(30)
    assert received() > before


def test_jaegers_other_ports_answer_as_they_do(hotel: Deployed) -> None:
    strategy = json.loads(ask(hotel, "jaeger", 5778, "/sampling?service=frontend").text)
    assert strategy == {"strategyType": "PROBABILISTIC", "probabilisticSampling": {"samplingRate": 1.0}}
    assert ask(hotel, "jaeger", 5778, "/sampling").status == 400
    assert ask(hotel, "jaeger", 14268, "/api/traces").status == 405
    assert ask(hotel, "jaeger", 14268, "/").status == 404
    assert ask(hotel, "jaeger", 14267, "/").status == 503, "TChannel is gone, whatever the pod declares"


def test_a_new_jaeger_begins_without_traces(hotel: Deployed) -> None:
    hotel.api.delete("pods", pod_of(hotel, HOTEL, "jaeger"), HOTEL)
    hotel.wait(20)
    query = "/api/traces?service=frontend&limit=100000"
    inside = json.loads(ask(hotel, "jaeger", 16686, query).text)["data"]
    assert 0 < len(inside) < len(harness(hotel, query)["data"])


# Jaeger 2 and the Collector, in the Astronomy Shop


def test_jaeger_2_serves_its_base_path_and_its_health(shop: Deployed) -> None:
    services = json.loads(ask(shop, "jaeger", 16686, f"{JAEGER}/api/services").text)["data"]
    assert services == harness(shop, "/api/services")["data"] and "checkout" in services
    pod = pod_of(shop, SHOP, "jaeger")
    health = json.loads(shop.api.request_pod(pod, 13133, "/status", SHOP).text)
    assert health["healthy"] is True and health["status"] == "StatusOK"
    assert shop.api.request_pod(pod, 13133, "/", SHOP).status == 404


def test_the_collectors_counters_follow_the_spans_that_jaeger_gets(shop: Deployed) -> None:
    agents = [name for name in shop.pods(SHOP) if name.startswith("otel-collector-agent")]
    for pod in agents:
        tools = {"name": "tools", "image": "busybox:1.36", "command": ["sleep", "9999"]}
        shop.api.patch("pods", pod, {"spec": {"ephemeralContainers": [tools]}}, SHOP, subresource="ephemeralcontainers")
    shop.wait(10)
    ask_for_metrics = ["wget", "-qO-", "http://localhost:8888/metrics"]
    pages = [shop.api.exec(pod, ask_for_metrics, SHOP, container="tools").output for pod in agents]
    jaeger = shop.api.exec(pod_of(shop, SHOP, "jaeger"), ask_for_metrics, SHOP).output
    name = "otelcol_receiver_accepted_spans_total"
    accepted = [sum(series(page, name).values()) for page in pages]
    assert all(count > 0 for count in accepted), "processes spread over the agents"
    sent = sum(
        value
        for page in pages
        for labels, value in series(page, "otelcol_exporter_sent_spans_total").items()
        if 'exporter="otlp/jaeger"' in labels
    )
    # Time goes on while one page after the other is read; spans come in a few times a second.
    assert sent == pytest.approx(sum(accepted), rel=0.02)
    assert sum(series(jaeger, name).values()) == pytest.approx(sent, rel=0.02)
    health = json.loads(shop.api.request_pod(agents[0], 13133, "/", SHOP).text)
    assert health["status"] == "Server available"


def test_a_span_that_is_sent_to_the_collector_is_found_in_jaeger(shop: Deployed) -> None:
    start = int(harness(shop, "/api/traces?service=frontend&limit=1")["data"][0]["spans"][0]["startTime"]) * 1000
    span = {"traceId": TRACE, "spanId": "eee19b7ec3c1b174", "name": "by hand", "kind": 2}
    span |= {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 5_000_000)}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "my-check"}}]}
    document = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}

    def send(body: bytes, kind: str = "application/json", method: str = "POST", path: str = "/v1/traces") -> Reply:
        headers = {"content-type": kind}
        return ask(shop, "otel-collector", 4318, path, method=method, body=body, headers=headers)

    reply = send(json.dumps(document).encode())
    assert (reply.status, reply.text) == (200, '{"partialSuccess":{}}')
    found = json.loads(ask(shop, "jaeger", 16686, f"{JAEGER}/api/traces/{TRACE}").text)["data"][0]
    assert [(one["operationName"], one["duration"]) for one in found["spans"]] == [("by hand", 5000)]
    assert harness(shop, f"/api/traces/{TRACE}")["data"] == [found]
    assert send(b"{").status == 400
    assert send(b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "1"}]}]}]}').status == 400
    assert send(b"{}", "text/plain").status == 415
    assert send(b"", method="GET").status == 405
    assert send(b"{}", path="/v1/nothing").status == 404


def test_a_collector_refuses_a_broken_configuration(shop: Deployed) -> None:
    config = shop.api.get("configmaps", "otel-collector-agent", SHOP)["data"]["relay"]
    broken = config.replace("receivers: [otlp]", "receivers: [zipkin]", 1)
    shop.api.patch("configmaps", "otel-collector-agent", {"data": {"relay": broken}}, SHOP)
    pod = pod_of(shop, SHOP, "otel-collector-agent")
    shop.api.delete("pods", pod, SHOP)
    shop.wait(45)
    texts = [shop.api.logs(name, SHOP) for name in shop.pods(SHOP) if name.startswith("otel-collector-agent")]
    assert any('references receiver "zipkin" which is not configured' in text for text in texts)
    shop.api.patch("configmaps", "otel-collector-agent", {"data": {"relay": config}}, SHOP)
    shop.wait(60)


# OpenSearch


def test_opensearch_introduces_itself_and_lists_its_indices(shop: Deployed) -> None:
    root = json.loads(ask(shop, "opensearch", 9200, "/").text)
    assert root["version"]["number"] == "3.4.0" and root["cluster_name"] == "demo-cluster"
    health = json.loads(ask(shop, "opensearch", 9200, "/_cluster/health").text)
    assert health["status"] == "yellow" and health["number_of_nodes"] == 1
    header, row = ask(shop, "opensearch", 9200, "/_cat/indices?v").text.splitlines()
    assert header.split()[:3] == ["health", "status", "index"] and row.split()[2] == "otel-logs"
    assert ask(shop, "opensearch", 9600, "/").status == 503


def test_opensearch_has_the_lines_that_the_applications_wrote(shop: Deployed) -> None:
    pod = pod_of(shop, SHOP, "recommendation")
    query = {"term": {"resource.k8s.pod.name.keyword": pod}}
    found = search(shop, "/otel-logs/_search", {"query": query, "size": 1000, "sort": [{"@timestamp": "asc"}]})
    bodies = [hit["_source"]["body"] for hit in found["hits"]["hits"]]
    lines = shop.api.logs(pod, SHOP).splitlines()
    first = lines.index(bodies[0])
    assert lines[first : first + len(bodies)] == bodies, "all lines since OpenSearch started"
    assert found["hits"]["total"] == {"value": len(bodies), "relation": "eq"}
    request = next(hit["_source"] for hit in found["hits"]["hits"] if "Receive" in hit["_source"]["body"])
    assert request["severity"] == {"number": 9, "text": "INFO"}
    assert request["traceId"] in request["body"] and request["spanId"] in request["body"]
    assert search(shop, "/otel*/_count", {"query": query})["count"] == len(bodies)


def test_opensearch_understands_the_queries_people_write(shop: Deployed) -> None:
    # Time passes while one asks, so all questions are about the lines until a fixed instant.
    sorted_by_time = {"size": 1, "sort": [{"@timestamp": "desc"}], "query": {"range": {"@timestamp": {"lt": "now-5s"}}}}
    newest, older = (
        search(shop, "/_search", {**sorted_by_time, "from": skipped})["hits"]["hits"][0]["_source"]["@timestamp"]
        for skipped in (0, 50)
    )
    until = {"range": {"@timestamp": {"lte": newest}}}

    def count(query: Any) -> int:
        within = {"bool": {"must": [query], "filter": [until]}}
        return int(search(shop, "/otel-logs/_count", {"query": within})["count"])

    everything = count({"match_all": {}})
    cart = {"match": {"resource.service.name": "cart"}}
    early = {"range": {"@timestamp": {"lt": older}}}
    late = {"range": {"@timestamp": {"gte": older}}}
    assert 0 < count(late) < everything
    assert count({"range": {"@timestamp": {"lt": "now-60s"}}}) < everything
    assert 0 < count(cart) < everything
    assert count({"bool": {"must_not": [cart]}}) == everything - count(cart)
    assert count({"bool": {"should": [early, late]}}) == everything
    assert count({"bool": {"must": [cart], "filter": [early]}}) + count({"bool": {"filter": [cart, late]}}) == count(
        cart
    )
    assert count({"query_string": {"query": "resource.service.name:cart"}}) == count(cart)
    groups = {"services": {"terms": {"field": "resource.service.name.keyword", "size": 50}}}
    found = search(shop, "/_search", {"size": 0, "query": until, "aggs": groups})
    buckets = {one["key"]: one["doc_count"] for one in found["aggregations"]["services"]["buckets"]}
    assert buckets["cart"] == count(cart) and sum(buckets.values()) == everything
    assert not {"postgresql", "valkey-cart", "jaeger"} & set(buckets), "they export no log records"


def test_opensearch_refuses_in_its_own_words(shop: Deployed) -> None:
    unknown = search(shop, "/_search", {"query": {"more_like_this": {}}})
    assert unknown["_http"] == 400 and unknown["error"]["reason"] == "unknown query [more_like_this]"
    absent = search(shop, "/nothing/_search", {})
    assert absent["_http"] == 404 and absent["error"]["type"] == "index_not_found_exception"
    assert search(shop, "/_cluster/health", {})["_http"] == 405
    assert "no handler found" in search(shop, "/_ml/stats", {})["error"]
    window = search(shop, "/_search", {"from": 9_999, "size": 10})
    assert "Result window is too large" in window["error"]["reason"]


# Grafana


def test_grafana_serves_its_sub_path_and_its_data_source(shop: Deployed) -> None:
    assert json.loads(ask(shop, "grafana", 80, "/api/health").text) == {"database": "ok", "version": "12.3.1"}
    assert "<title>Grafana</title>" in ask(shop, "grafana", 80, "/grafana/").text
    sources = json.loads(ask(shop, "grafana", 80, "/grafana/api/datasources").text)
    assert [(one["name"], one["uid"], one["type"]) for one in sources] == [("Jaeger", "webstore-traces", "jaeger")]
    proxied = ask(shop, "grafana", 80, "/grafana/api/datasources/proxy/uid/webstore-traces/api/services")
    assert "checkout" in json.loads(proxied.text)["data"]
    assert ask(shop, "grafana", 80, "/grafana/api/nothing").status == 404
    command = ["curl", "-s", "-u", "admin:wrong", "http://localhost:3000/grafana/api/org"]
    refused = shop.api.exec(pod_of(shop, SHOP, "grafana"), command, SHOP, container="grafana")
    assert json.loads(refused.output)["messageId"] == "auth.unauthorized"


def test_grafanas_proxy_fails_with_jaeger(shop: Deployed) -> None:
    health = "/grafana/api/datasources/uid/webstore-traces/health"
    assert ask(shop, "grafana", 80, health).status == 200
    shop.api.scale("deployments", "jaeger", 0, SHOP)
    shop.wait(40)
    assert ask(shop, "grafana", 80, health).status == 400
    proxied = ask(shop, "grafana", 80, "/grafana/api/datasources/proxy/uid/webstore-traces/api/services")
    assert proxied.status == 502
    shop.api.scale("deployments", "jaeger", 1, SHOP)
    shop.wait(40)
