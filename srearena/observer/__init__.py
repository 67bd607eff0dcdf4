"""Export of telemetry to disk: the metrics, logs and traces of a time window.

All data is read through the HTTP APIs of Prometheus, Loki and Jaeger, of the embedded cluster and of real ones alike.

    from srearena.observer import LogApi, MetricApi, TraceApi, Window

    window = Window.last(900, until=now)
    MetricApi(endpoints.prometheus, endpoints.token).export(window, directory)
    LogApi(endpoints.loki, endpoints.token).export(window, directory)
    TraceApi(endpoints.jaeger, endpoints.token).export(window, directory)
"""

from srearena.observer.errors import ObserverError
from srearena.observer.log_api import LogApi
from srearena.observer.metric_api import MetricApi
from srearena.observer.tables import Export, Format
from srearena.observer.trace_api import TraceApi
from srearena.observer.window import Window

__all__ = ["Export", "Format", "LogApi", "MetricApi", "ObserverError", "TraceApi", "Window"]
