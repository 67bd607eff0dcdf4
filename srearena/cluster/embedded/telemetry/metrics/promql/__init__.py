"""PromQL: parsed by `promql-parser`, evaluated with numpy over all steps of a query at once.

The semantics are those of Prometheus 2.42, with which the tests compare: ranges and the lookback include both ends.
Native histograms are not supported.
"""
