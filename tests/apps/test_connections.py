"""Connections of the load: in the kernel's tables, in metrics, and at a limit on open files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from srearena.generators.fault.actors import deployment
from srearena.generators.fault.inject_node import FORTIO
from srearena.service.apps.registry import find_application
from tests.apps.deployed import Deployed, deployed

HOTEL = "hotel-reservation"
PORT = 5000
LIMIT = 256


@pytest.fixture(scope="module")
def hotel() -> Iterator[Deployed]:
    with deployed(HOTEL, models=[find_application(HOTEL).folder]) as running:
        assert running.application is not None
        running.application.start_workload(running.cluster)
        running.wait(120)
        yield running


def pod_of(hotel: Deployed, labels: str) -> str:
    names = [name for name, pod in hotel.pods(HOTEL, labels).items() if not pod["metadata"].get("deletionTimestamp")]
    return names[0]


def shell(hotel: Deployed, pod: str, script: str) -> str:
    result = hotel.api.exec(pod, ["sh", "-c", script], HOTEL)
    assert result.status == 0, result.errors
    return result.output


def tcp_table(hotel: Deployed, pod: str) -> list[list[str]]:
    return [line.split() for line in shell(hotel, pod, "cat /proc/net/tcp").splitlines()[1:]]


def established(table: list[list[str]], port: int, column: int = 1) -> list[list[str]]:
    return [row for row in table if row[3] == "01" and row[column].endswith(f":{port:04X}")]


def results(hotel: Deployed, query: str) -> list[dict[str, Any]]:
    endpoints = hotel.cluster.telemetry
    answer: dict[str, Any] = httpx.get(
        f"{endpoints.prometheus}/api/v1/query",
        params={"query": query},
        headers={"authorization": f"Bearer {endpoints.token}"},
    ).json()
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


def metric(hotel: Deployed, query: str) -> float:
    return float(results(hotel, query)[0]["value"][1])


def test_both_ends_list_the_connections_of_the_load(hotel: Deployed) -> None:
    generator, frontend = pod_of(hotel, "job-name=wrk2-job"), pod_of(hotel, "io.kompose.service=frontend")
    near = established(tcp_table(hotel, generator), PORT, column=2)
    far = established(tcp_table(hotel, frontend), PORT)
    assert len(near) == len(far) == 100
    assert {row[1] for row in near} == {row[2] for row in far}  # the generator's addresses and ports
    assert len({row[9] for row in far}) == 100


def test_descriptors_are_those_of_the_sockets(hotel: Deployed) -> None:
    frontend = pod_of(hotel, "io.kompose.service=frontend")
    links = shell(hotel, frontend, "for f in /proc/1/fd/*; do readlink $f; done").splitlines()
    sockets = {link.strip("socket:[]") for link in links if link.startswith("socket:")}
    assert sockets == {row[9] for row in tcp_table(hotel, frontend)}
    hotel.wait(15)
    assert metric(hotel, f'container_file_descriptors{{pod="{frontend}",container!=""}}') == len(links)
    assert metric(hotel, f'container_sockets{{pod="{frontend}",container!=""}}') == len(sockets)


def test_a_database_counts_the_connections_that_its_kernel_lists(hotel: Deployed) -> None:
    database = pod_of(hotel, "io.kompose.service=mongodb-rate")
    hotel.wait(15)
    own = metric(hotel, f'mongodb_ss_connections{{pod="{database}",conn_type="current"}}')
    assert own == len(established(tcp_table(hotel, database), 27017)) > 0


def test_tracked_connections_are_at_least_those_of_the_load(hotel: Deployed) -> None:
    node = hotel.api.get("pods", pod_of(hotel, "job-name=wrk2-job"), HOTEL)["spec"]["nodeName"]
    assert 100 <= metric(hotel, f'node_nf_conntrack_entries{{instance="{node}"}}') < 1000


def test_output_of_the_first_process_is_written_through_its_descriptor(hotel: Deployed) -> None:
    frontend = pod_of(hotel, "io.kompose.service=frontend")
    shell(hotel, frontend, "echo marker-of-a-visitor > /proc/1/fd/1")
    assert "marker-of-a-visitor" in hotel.api.logs(frontend, HOTEL)


MOVING = (
    "container_cpu_usage_seconds_total",
    "container_memory_working_set_bytes",
    "container_memory_rss",
    'container_network_receive_bytes_total{pod!=""}',
    'container_network_transmit_packets_total{pod!=""}',
    'container_fs_writes_bytes_total{pod=~"mongodb-.*|etcd-.*"}',
    "node_network_receive_bytes_total",
    "node_network_transmit_packets_total",
    "node_memory_MemAvailable_bytes",
    "node_memory_Slab_bytes",
    "node_sockstat_sockets_used",
    "node_disk_writes_completed_total",
    "process_resident_memory_bytes",
    "go_memory_used_bytes",
    'mongodb_ss_opcounters{legacy_op_type="command"}',
    'workqueue_adds_total{name=~"claims|volumes|garbage_collector_graph_changes|node_lifecycle_controller"}',
    "probe_duration_seconds",
    "scrape_duration_seconds",
)
"""Series of a healthy system of which not one stands still for ten minutes."""


def test_what_moves_in_life_moves(hotel: Deployed) -> None:
    hotel.wait(600)
    for selector in MOVING:
        assert results(hotel, selector), selector
        still = [series["metric"] for series in results(hotel, f"changes({selector}[9m]) == 0")]
        assert not still, selector


def test_memory_adds_up_and_differs_by_kind(hotel: Deployed) -> None:
    about = '{container!="",namespace="hotel-reservation"}'
    assert not results(hotel, f"container_memory_rss{about} >= container_memory_working_set_bytes{about}")
    assert not results(hotel, f"container_memory_working_set_bytes{about} > container_memory_usage_bytes{about}")
    kinds = "container_memory_rss", "container_memory_cache", "container_memory_working_set_bytes"
    for kind in kinds:
        whole = f'{kind}{{container="",namespace="{HOTEL}"}}'
        assert not results(hotel, f"abs({whole} - on (pod) sum by (pod) ({kind}{about})) > 0")


def test_a_program_has_as_many_threads_as_its_runtime_starts(hotel: Deployed) -> None:
    pod = pod_of(hotel, "io.kompose.service=frontend")
    [line] = [row for row in shell(hotel, pod, "cat /proc/1/status").splitlines() if row.startswith("Threads")]
    listed = metric(hotel, f'container_threads{{pod="{pod}",container!=""}}')
    assert int(line.split()[1]) == listed > metric(hotel, f'container_processes{{pod="{pod}",container!=""}}')


def test_a_backend_of_traces_receives_them_over_its_interface(hotel: Deployed) -> None:
    pod = pod_of(hotel, "io.kompose.service=jaeger")
    spans = 'sum(traces_span_metrics_calls_total{namespace="hotel-reservation"})'
    received = metric(hotel, f'rate(container_network_receive_bytes_total{{pod="{pod}"}}[5m])')
    assert received > 200, "a request a second leaves several spans"
    assert metric(hotel, spans) > 0


def test_a_server_closes_idle_connections_whose_client_pings_too_often(hotel: Deployed) -> None:
    complaint = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d ERROR: \[transport\] .*too_many_pings", re.M)

    def complaints() -> int:
        return len(complaint.findall(hotel.log(HOTEL, "io.kompose.service=search")))

    assert complaints() == 0, "search is called all the time"
    hotel.api.scale("deployments", "frontend", 0, HOTEL)
    hotel.wait(60)
    assert complaints() == 2, "its connections to geo and rate are idle"
    hotel.wait(45)
    assert complaints() == 2, "now it pings half as often"
    hotel.wait(45)
    assert complaints() == 4
    hotel.api.scale("deployments", "frontend", 1, HOTEL)
    hotel.wait(60)


def test_tcpdump_shows_the_requests_at_the_rate_of_the_load(hotel: Deployed) -> None:
    pod = pod_of(hotel, "io.kompose.service=frontend")
    spec = {"name": "debugger", "image": "nicolaka/netshoot", "command": ["sleep", "100000"]}
    changed = {"spec": {"ephemeralContainers": [spec]}}
    hotel.api.patch("pods", pod, changed, HOTEL, subresource="ephemeralcontainers")
    hotel.wait(30)
    with hotel.cluster.fast_forward(60):
        script = f"timeout 10 tcpdump -i any -nn dst port {PORT}"
        capture = hotel.api.exec(pod, ["sh", "-c", script], HOTEL, container="debugger")
    requests = [line for line in capture.output.splitlines() if "length 400" in line]
    rate = metric(
        hotel, 'sum(rate(traces_span_metrics_calls_total{service_name="frontend",span_kind="SPAN_KIND_SERVER"}[2m]))'
    )
    assert len(requests) / 10 == pytest.approx(rate, rel=0.2)
    generator = hotel.api.get("pods", pod_of(hotel, "job-name=wrk2-job"), HOTEL)["status"]["podIP"]
    assert all(re.search(rf"In +IP {generator}\.\d+ > \S+\.{PORT}: Flags \[P\.\]", line) for line in requests)
    assert re.search(r"^\d+ packets captured$", capture.errors, re.M)


def test_a_program_out_of_descriptors_fails_to_accept_again_and_again(hotel: Deployed) -> None:
    container = {
        "name": "fortio",
        "image": FORTIO,
        "args": ["load", "-c", "300", "-qps", "1", "-t", "0", "http://frontend:5000/"],
    }
    hotel.api.apply(deployment("partner", HOTEL, {"containers": [container]}))
    script = {"command": ["sh", "-c", f"ulimit -n {LIMIT}; exec ./frontend"]}
    current = hotel.api.get("deployments", "frontend", HOTEL)["spec"]["template"]["spec"]["containers"][0]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": current["name"], **script}]}}}}
    hotel.api.patch("deployments", "frontend", patch, HOTEL)
    hotel.wait(120)
    frontend = max(
        hotel.pods(HOTEL, "io.kompose.service=frontend").items(),
        key=lambda one: one[1]["metadata"]["creationTimestamp"],
    )[0]
    errors = re.compile(r"Accept error: accept tcp \[::\]:5000: accept4: too many open files; retrying in (\S+)$", re.M)
    before = len(errors.findall(hotel.api.logs(frontend, HOTEL)))
    hotel.wait(30)
    waits = errors.findall(hotel.api.logs(frontend, HOTEL))
    assert waits[:3] == ["5ms", "10ms", "20ms"]
    assert 28 <= len(waits) - before <= 60
    assert Counter(waits).most_common(1)[0][0] == "1s"
    assert len(shell(hotel, frontend, "ls /proc/1/fd").split()) == LIMIT
    waiting = [row for row in established(tcp_table(hotel, frontend), PORT) if row[9] == "0"]
    assert waiting, "connections in the accept queue belong to no process"
