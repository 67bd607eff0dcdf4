"""PromQL: parsed by `promql-parser`, evaluated with numpy over all steps of a query at once.

The meaning of every expression is that of Prometheus 2.42, which the tests compare it with: ranges and the lookback
include both their ends. Left out are native histograms.
"""
