"""Metrics: the samples (`store`), the query language over them (`promql`), and Prometheus' HTTP API (`api`)."""
