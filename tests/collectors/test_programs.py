"""Programs with numbers of their own: datastores through their exporters, annotated pods over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.objects import name_of
from srearena.cluster.embedded.programs.datastores.datastore import Login
from srearena.cluster.embedded.telemetry.collectors.exposition import samples_of
from tests.collectors.harness import Observed, deployment

PAGE = """# TYPE demo_requests_total counter
demo_requests_total{route="/"} 7
demo_temperature 21.5
"""


def _annotated(annotations: dict[str, str], page: str = PAGE) -> str:
    """A web server with a page called metrics."""
    mount = {"name": "page", "mountPath": "/usr/share/nginx/html"}
    spec = {
        "containers": [{"name": "main", "image": "nginx:1.27", "volumeMounts": [mount]}],
        "volumes": [{"name": "page", "configMap": {"name": "page"}}],
    }
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}, "data": {"metrics": page}}
    about = {"name": "demo", "annotations": annotations}
    return yaml.safe_dump_all([content, {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}])


def test_an_annotated_pod_is_asked_over_http(cluster: Observed) -> None:
    cluster.apply(_annotated({"prometheus.io/scrape": "true", "prometheus.io/port": "80"}))
    cluster.pass_time(45)
    about = {"pod": "demo", "namespace": "default", "container": "main", "job": "kubernetes-pods"}
    assert cluster.value("up", **about) == 1
    assert cluster.value("demo_requests_total", route="/", **about) == 7
    assert cluster.value("demo_temperature", **about) == 21.5
    assert cluster.store.metadata["demo_requests_total"].kind == "counter"


@pytest.mark.parametrize(
    ("annotations", "page", "error"),
    [
        ({"prometheus.io/port": "8080"}, PAGE, "connection refused"),
        ({"prometheus.io/port": "80", "prometheus.io/path": "/nowhere"}, PAGE, "server returned HTTP status 404"),
        ({"prometheus.io/port": "80"}, "<html>\n", "expected a metric, got '<html>'"),
    ],
)
def test_what_cannot_be_read_is_down(cluster: Observed, annotations: dict[str, str], page: str, error: str) -> None:
    cluster.apply(_annotated({"prometheus.io/scrape": "true", **annotations}, page))
    cluster.pass_time(45)
    assert cluster.value("up", pod="demo") == 0
    (target,) = [t for t in cluster.assembly.telemetry.targets() if t.labels.get("pod") == "demo"]
    assert target.health == "down" and error in target.error


def test_pods_without_the_annotation_are_left_alone(cluster: Observed) -> None:
    cluster.apply(_annotated({"note": "none"}))
    cluster.pass_time(45)
    assert not cluster.series("up", pod="demo")


def test_a_database_and_the_connections_it_has(cluster: Observed) -> None:
    cluster.apply(deployment("db", "mongo:4.4.6"))
    cluster.pass_time(60)
    (pod,) = cluster.pods("db")
    about = {"job": "mongodb-exporter", "pod": name_of(pod)}
    assert cluster.value("mongodb_up", **about) == 1
    assert cluster.value("mongodb_ss_connections", conn_type="current", **about) == 0
    server = _server(cluster, name_of(pod))
    assert server.attach("client-1", None, 5) is None
    assert server.put("shop", "orders", [{"total": 3}]) is None
    cluster.pass_time()
    assert cluster.value("mongodb_ss_connections", conn_type="current", **about) == 5
    assert cluster.value("mongodb_dbstats_objects", database="shop", **about) == 1


def _server(cluster: Observed, pod: str) -> Any:
    """The model that listens in a pod."""
    sandbox = cluster.nodes.sandbox("default", pod)
    assert sandbox is not None
    return next(listener.server for listener in sandbox.namespace.listeners() if listener.server is not None)


def test_a_broker_and_how_far_its_readers_are_behind(cluster: Observed) -> None:
    cluster.apply(deployment("kafka", "apache/kafka:3.9.1"))
    cluster.pass_time(60)
    pod = name_of(cluster.pods("kafka")[0])
    broker = _server(cluster, pod)
    assert broker.append("orders", 100, 50) is None
    assert broker.fetch("accounting", "orders", 60) == 60
    cluster.pass_time()
    about = {"job": "kafka-exporter", "topic": "orders", "pod": pod}
    assert sum(cluster.series("kafka_consumergroup_lag", consumergroup="accounting", **about).values()) == 40
    assert sum(cluster.series("kafka_topic_partition_current_offset", **about).values()) == 100
    assert cluster.value("kafka_consumergroup_members", consumergroup="accounting") == 1
    broker.fetch("accounting", "orders", 1000)
    cluster.pass_time()
    assert sum(cluster.series("kafka_consumergroup_lag", **about).values()) == 0


def test_a_cache_and_what_it_holds(cluster: Observed) -> None:
    cluster.apply(deployment("cache", "redis:7"))
    cluster.pass_time(60)
    pod = name_of(cluster.pods("cache")[0])
    about = {"job": "redis-exporter", "pod": pod}
    assert cluster.value("redis_up", **about) == 1
    before = cluster.value("redis_memory_used_bytes", **about)
    assert _server(cluster, pod).fill("session:", 1000, 500) == 1000
    cluster.pass_time()
    assert cluster.value("redis_db_keys", db="db0", **about) == 1000
    assert cluster.value("redis_memory_used_bytes", **about) - before > 1000 * 500
    assert cluster.value("redis_memory_max_bytes", **about) == 0


def test_hits_and_misses_of_a_cache(cluster: Observed) -> None:
    cluster.apply(deployment("cache", "memcached:1.6"))
    cluster.pass_time(60)
    pod = name_of(cluster.pods("cache")[0])
    server = _server(cluster, pod)
    server.fill("user:", 10, 100)
    server.statistics.update(cmd_get=37, get_hits=30, get_misses=7)
    cluster.pass_time()
    about = {"job": "memcached-exporter", "pod": pod}
    assert cluster.value("memcached_up", **about) == 1
    assert cluster.value("memcached_current_items", **about) == 10
    assert cluster.value("memcached_commands_total", command="get", status="miss", **about) == 7


def test_a_server_and_its_limit_of_connections(cluster: Observed) -> None:
    secret = "{env: [{name: MYSQL_ROOT_PASSWORD, value: secret}]}"
    cluster.apply(deployment("mysql", "mysql:8.0", container=secret))
    cluster.pass_time(90)
    pod = name_of(cluster.pods("mysql")[0])
    assert cluster.value("mysql_up", pod=pod) == 1
    assert cluster.value("mysql_global_variables_max_connections", pod=pod) == 151
    _server(cluster, pod).attach("client", Login("root", "secret"), 7)
    cluster.pass_time()
    assert cluster.value("mysql_global_status_threads_connected", pod=pod) == 7


def test_an_exporter_outlives_its_server(cluster: Observed) -> None:
    cluster.apply(deployment("db", "postgres:17", container="{env: [{name: POSTGRES_PASSWORD, value: x}]}"))
    cluster.pass_time(60)
    pod = name_of(cluster.pods("db")[0])
    assert cluster.value("pg_up", pod=pod) == 1
    assert cluster.value("pg_settings_max_connections", pod=pod) == 100
    sandbox = cluster.nodes.sandbox("default", pod)
    assert sandbox is not None
    for listener in sandbox.namespace.listeners():
        listener.close()
    cluster.pass_time()
    assert cluster.value("pg_up", pod=pod) == 0
    assert cluster.value("up", pod=pod, job="postgres-exporter") == 1
    assert not cluster.series("pg_settings_max_connections", pod=pod)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(max_size=8)), st.floats(allow_nan=False))
def test_what_is_written_is_read(labels: dict[str, str], value: float) -> None:
    written = {key: text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for key, text in labels.items()}
    shown = ",".join(f'{key}="{text}"' for key, text in written.items())
    assert list(samples_of(f"name{{{shown}}} {value!r}\n")) == [("name", labels, value)]
