"""PromQL for the golden signals: requests, errors and latency of services and of the calls they send, and resources.

They read the span metrics of the OpenTelemetry collector, cAdvisor and kube-state-metrics, which every environment has.
"""

from __future__ import annotations

SERVED = 'span_kind=~"SPAN_KIND_(SERVER|CONSUMER)"'
"""Spans of requests that a service answered."""
SENT = 'span_kind=~"SPAN_KIND_(CLIENT|PRODUCER)"'
"""Spans of requests that a service sent."""
FAILED = 'status_code="STATUS_CODE_ERROR"'


def requests(spans: str, by: str, window: str) -> str:
    """Requests per second."""
    return f"sum by ({by}) (rate(traces_span_metrics_calls_total{{{spans}}}[{window}]))"


def errors(spans: str, by: str, window: str) -> str:
    """Failed requests per second."""
    return requests(f"{spans},{FAILED}", by, window)


def latency(spans: str, by: str, window: str, quantile: float = 0.95) -> str:
    """A quantile of the durations, in milliseconds."""
    buckets = f"traces_span_metrics_duration_milliseconds_bucket{{{spans}}}"
    return f"histogram_quantile({quantile:g}, sum by ({by}, le) (rate({buckets}[{window}])))"


def cpu(window: str) -> str:
    """Cores used, by pod."""
    return f'sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{{container!="",pod!=""}}[{window}]))'


def memory() -> str:
    """Bytes of the working set, by pod."""
    return 'sum by (namespace, pod) (container_memory_working_set_bytes{container!="",pod!=""})'


def measures(window: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Each measure of a system: its query, and the labels that are its key."""
    served, sent, pods = ("namespace", "service_name"), ("namespace", "service_name", "span_name"), ("namespace", "pod")
    by_service, by_call = ", ".join(served), ", ".join(sent)
    return {
        "requests": (requests(SERVED, by_service, window), served),
        "errors": (errors(SERVED, by_service, window), served),
        "latency": (latency(SERVED, by_service, window), served),
        "sent": (requests(SENT, by_call, window), sent),
        "sent errors": (errors(SENT, by_call, window), sent),
        "sent latency": (latency(SENT, by_call, window), sent),
        "cpu": (cpu(window), pods),
        "memory": (memory(), pods),
    }
