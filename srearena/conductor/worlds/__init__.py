"""Prepared episodes in processes of their own that can be forked at any moment, copy-on-write.

from srearena.conductor.worlds import prepare

with prepare("k8s_target_port-misconfig", EpisodeSpec(seed=1)) as template:
    first, second = template.fork(2)
    first.act('kubectl("get pods")')
"""

from srearena.conductor.worlds.client import (
    EpisodeProcess,
    HealthySystem,
    Step,
    WorkingCopy,
    load,
    prepare,
    prepare_healthy,
)
from srearena.conductor.worlds.journal import Journal
from srearena.conductor.worlds.quiescence import fork_is_safe

__all__ = [
    "EpisodeProcess",
    "HealthySystem",
    "Journal",
    "Step",
    "WorkingCopy",
    "fork_is_safe",
    "load",
    "prepare",
    "prepare_healthy",
]
