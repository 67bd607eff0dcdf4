"""Each packaged rule fires on the samples it is about, and not on those of a healthy system."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules
from srearena.cluster.embedded.telemetry.alerts.rule_files import packaged_groups
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

START = 1_700_000_100.0
MINUTES = 40
_SERIES = dict[str, str]
Course = Callable[[float], float | None]
"""The value of a series a number of seconds after the start; None where it has ended."""


def steady(value: float) -> Course:
    return lambda seconds: value


def counting(per_second: float) -> Course:
    return lambda seconds: per_second * seconds


def faster(before: float, after: float) -> Course:
    """A counter whose pace changes ten minutes before the end."""
    turn = (MINUTES - 10) * 60
    return lambda seconds: before * min(seconds, turn) + after * max(0, seconds - turn)


@dataclass
class Case:
    alert: str
    bad: list[tuple[str, _SERIES, Course]]
    good: list[tuple[str, _SERIES, Course]] = field(default_factory=list)
    along: frozenset[str] = frozenset()
    """Alerts that the same samples must fire, too."""


CALLS, DURATION = "traces_span_metrics_calls_total", "traces_span_metrics_duration_milliseconds_bucket"
CART = {"namespace": "shop", "service_name": "cart", "span_kind": "SPAN_KIND_SERVER", "span_name": "GET"}
OK, ERROR = {"status_code": "STATUS_CODE_UNSET"}, {"status_code": "STATUS_CODE_ERROR"}
POD = {"namespace": "shop", "pod": "cart-0", "container": "cart"}
CLAIM = {"namespace": "shop", "persistentvolumeclaim": "data"}
HPA = {"namespace": "shop", "horizontalpodautoscaler": "cart"}
GROUP = {"namespace": "shop", "consumergroup": "billing", "topic": "orders"}


def buckets(slow: float) -> list[tuple[str, _SERIES, Course]]:
    """A tenth of the calls take longer than some milliseconds."""
    edges = {"100": 0.0, str(slow): 9.0, str(slow * 2): 10.0, "+Inf": 10.0}
    return [(DURATION, {**CART, "le": edge}, counting(rate)) for edge, rate in edges.items()]


def silenced(value: float) -> Course:
    """A series that ends a quarter of an hour before the end."""
    return lambda seconds: value if seconds < (MINUTES - 15) * 60 else None


def lag(growth: float) -> Course:
    return lambda seconds: 1000 + growth * seconds


CASES = [
    Case(
        "HighRequestErrorRate",
        [(CALLS, CART | OK, counting(8)), (CALLS, CART | ERROR, counting(2))],
        [(CALLS, CART | OK, counting(9.5)), (CALLS, CART | ERROR, counting(0.5))],
    ),
    Case(
        "HighRequestErrorRate",
        [
            ("locust_requests_num_requests", {"method": "GET", "name": "/"}, counting(5)),
            ("locust_requests_num_failures", {"method": "GET", "name": "/"}, counting(1)),
        ],
        [
            ("locust_requests_num_requests", {"method": "GET", "name": "/"}, counting(5)),
            ("locust_requests_num_failures", {"method": "GET", "name": "/"}, steady(3)),
        ],
    ),
    Case(
        "HighRequestLatency",
        [*buckets(4000), (CALLS, CART | OK, counting(10))],
        [*buckets(800), (CALLS, CART | OK, counting(10))],
    ),
    Case("HighRequestRate", [(CALLS, CART | OK, faster(40, 150))], [(CALLS, CART | OK, counting(500))]),
    Case(
        "NoRequestsReceived",
        [(CALLS, CART | OK, faster(40, 0))],
        [(CALLS, CART | OK, faster(40, 20))],
        frozenset({"RequestsStopped"}),
    ),
    Case(
        "NoDatabaseOperations",
        [("redis_commands_processed_total", POD | {"job": "redis-exporter"}, faster(300, 0))],
        [("redis_commands_processed_total", POD | {"job": "redis-exporter"}, faster(300, 20))],
    ),
    Case(
        "NoDatabaseOperations",
        [
            ("mongodb_ss_opcounters", POD | {"legacy_op_type": "query"}, faster(30, 0)),
            ("mongodb_ss_opcounters", POD | {"legacy_op_type": "insert"}, faster(5, 0)),
        ],
        [
            ("mongodb_ss_opcounters", POD | {"legacy_op_type": "query"}, faster(30, 0)),
            ("mongodb_ss_opcounters", POD | {"legacy_op_type": "insert"}, faster(5, 1)),
        ],
    ),
    Case(
        "RequestsStopped",
        [(CALLS, CART | OK, faster(40, 0)), (CALLS, CART | OK | {"service_name": "frontend"}, counting(40))],
        [(CALLS, CART | OK, faster(40, 20))],
    ),
    Case(
        "MessageConsumerLag",
        [
            (CALLS, {"namespace": "shop", "span_name": "publish orders", "service_name": "checkout"}, counting(4)),
            (CALLS, {"namespace": "shop", "span_name": "receive orders", "service_name": "billing"}, counting(4)),
            (CALLS, {"namespace": "shop", "span_name": "receive orders", "service_name": "fraud"}, counting(1)),
        ],
        [
            (CALLS, {"namespace": "shop", "span_name": "publish orders", "service_name": "checkout"}, counting(4)),
            (CALLS, {"namespace": "shop", "span_name": "receive orders", "service_name": "billing"}, counting(4)),
        ],
    ),
    Case(
        "KafkaConsumerGroupLag",
        [("kafka_consumergroup_lag", GROUP, lag(2))],
        [("kafka_consumergroup_lag", GROUP, lag(-0.3))],
    ),
    Case(
        "ContainerMemoryNearLimit",
        [
            ("container_memory_working_set_bytes", POD, steady(98e6)),
            ("kube_pod_container_resource_limits", POD | {"resource": "memory"}, steady(1e8)),
        ],
        [
            ("container_memory_working_set_bytes", POD, steady(70e6)),
            ("kube_pod_container_resource_limits", POD | {"resource": "memory"}, steady(1e8)),
        ],
    ),
    Case(
        "ContainerOOMKilled",
        [
            ("kube_pod_container_status_last_terminated_reason", POD | {"reason": "OOMKilled"}, steady(1)),
            ("kube_pod_container_status_restarts_total", POD, faster(0, 0.004)),
        ],
        [
            ("kube_pod_container_status_last_terminated_reason", POD | {"reason": "OOMKilled"}, steady(1)),
            ("kube_pod_container_status_restarts_total", POD, steady(1)),
        ],
    ),
    Case(
        "KubePersistentVolumeFillingUp",
        [
            ("kubelet_volume_stats_available_bytes", CLAIM, steady(5)),
            ("kubelet_volume_stats_capacity_bytes", CLAIM, steady(100)),
        ],
        [
            ("kubelet_volume_stats_available_bytes", CLAIM, steady(50)),
            ("kubelet_volume_stats_capacity_bytes", CLAIM, steady(100)),
        ],
    ),
    Case(
        "KubeHpaMaxedOut",
        [
            ("kube_horizontalpodautoscaler_status_current_replicas", HPA, steady(5)),
            ("kube_horizontalpodautoscaler_spec_max_replicas", HPA, steady(5)),
            ("kube_horizontalpodautoscaler_spec_min_replicas", HPA, steady(1)),
        ],
        [
            ("kube_horizontalpodautoscaler_status_current_replicas", HPA, steady(5)),
            ("kube_horizontalpodautoscaler_spec_max_replicas", HPA, steady(5)),
            ("kube_horizontalpodautoscaler_spec_min_replicas", HPA, steady(5)),
        ],
    ),
    Case(
        "KubeJobFailed", [("kube_job_failed", {"namespace": "shop", "job_name": "j", "condition": "true"}, steady(1))]
    ),
    Case(
        "KubeNodePressure",
        [("kube_node_status_condition", {"node": "n", "condition": "DiskPressure", "status": "true"}, steady(1))],
        [("kube_node_status_condition", {"node": "n", "condition": "DiskPressure", "status": "true"}, steady(0))],
    ),
    Case(
        "NodeHighConntrackEntriesUsed",
        [
            ("node_nf_conntrack_entries", {"instance": "n"}, steady(80)),
            ("node_nf_conntrack_entries_limit", {"instance": "n"}, steady(100)),
        ],
        [
            ("node_nf_conntrack_entries", {"instance": "n"}, steady(8)),
            ("node_nf_conntrack_entries_limit", {"instance": "n"}, steady(100)),
        ],
    ),
    Case(
        "TiDBInstanceNotReady",
        [
            ("kube_statefulset_replicas", {"namespace": "tidb", "statefulset": "basic-tidb"}, steady(2)),
            ("kube_statefulset_status_replicas_ready", {"namespace": "tidb", "statefulset": "basic-tidb"}, steady(2)),
            ("tidb_server_connections", {"namespace": "tidb", "instance": "a"}, silenced(4)),
        ],
        [
            ("kube_statefulset_replicas", {"namespace": "tidb", "statefulset": "basic-tidb"}, steady(2)),
            ("kube_statefulset_status_replicas_ready", {"namespace": "tidb", "statefulset": "basic-tidb"}, steady(2)),
            ("tidb_server_connections", {"namespace": "tidb", "instance": "a"}, steady(0)),
        ],
    ),
    Case(
        "CoreDNSErrorsHigh",
        [
            ("coredns_dns_responses_total", {"rcode": "NOERROR"}, counting(5)),
            ("coredns_dns_responses_total", {"rcode": "SERVFAIL"}, counting(1)),
        ],
        [("coredns_dns_responses_total", {"rcode": "NXDOMAIN"}, counting(5))],
    ),
]


def firing(samples: list[tuple[str, _SERIES, Course]]) -> set[str]:
    store = MetricStore()
    blocks = [(store.block([{"__name__": name, **labels}]), course) for name, labels, course in samples]
    for step in range(MINUTES * 4):
        for block, course in blocks:
            value = course(step * 15)
            if value is not None:
                block.append(START + step * 15, [value])
    rules = Rules(store, packaged_groups())
    return {rule.name for rule, alert in rules.active(START + MINUTES * 60 - 10) if alert.state == "firing"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_it_fires_on_what_it_is_about(case: Case) -> None:
    assert firing(case.bad) == {case.alert} | case.along


@pytest.mark.parametrize("case", [case for case in CASES if case.good], ids=lambda case: case.alert)
def test_it_is_quiet_otherwise(case: Case) -> None:
    assert firing(case.good) == set()


def test_a_value_nobody_knows_fires_nothing() -> None:
    assert firing([(CALLS, CART | ERROR, steady(math.nan))]) == set()


@pytest.mark.parametrize("offset", range(0, 120, 15))
def test_data_that_is_loaded_within_four_minutes_is_no_use_of_a_database(offset: int) -> None:
    """At whatever moment relative to the rule's evaluation."""
    begin = (MINUTES - 10) * 60 + offset
    load: Course = lambda seconds: 5 * min(max(seconds - begin, 0), 240)  # noqa: E731
    assert firing([("mongodb_ss_opcounters", POD | {"legacy_op_type": "insert"}, load)]) == set()
