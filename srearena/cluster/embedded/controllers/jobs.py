"""Jobs: pods that run to an end, counted, retried and indexed."""
