"""What Prometheus scrapes from a cluster: one module per exporter, each turning the cluster's state into samples."""
