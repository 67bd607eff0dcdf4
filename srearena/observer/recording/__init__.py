"""The parts of a recording, in the raw layout of recorded incidents (docs/snapshots.md).

`watcher` captures alerts, events and objects at intervals; `telemetry` exports logs, spans and metrics afterwards;
`propagation` and `answer_key` derive the ground truth; `recorder` (one level up) records one problem, `data_set` many.
"""
