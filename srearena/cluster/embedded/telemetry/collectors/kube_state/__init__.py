"""kube-state-metrics: the objects of the API as numbers, kind by kind, in tables."""
