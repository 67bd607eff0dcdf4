"""Snapshots in the making: what a cluster's APIs say, written in the layout that recorded incidents are exchanged in.

`watching` looks at alerts, events and objects while time passes; `telemetry` fetches logs, spans and metrics of a
window afterwards; `propagation` and `truth` derive the answer key; `recorder` runs one problem, `data_set` many.
"""
