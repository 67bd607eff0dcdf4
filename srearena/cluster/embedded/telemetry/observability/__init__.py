"""Observability programs inside the cluster (Jaeger, the OpenTelemetry Collector, OpenSearch, Grafana).

They read the stores that the harness's own addresses show, limited to what reached them: the spans and log lines of
their namespace since their process started. Everything is computed at the request.
"""
