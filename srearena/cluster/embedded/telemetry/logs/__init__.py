"""Log lines gathered from every container and kept past its end, read through Loki's HTTP API in LogQL."""
