"""Our kube-state-metrics against the real one: the same objects, the same samples."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.telemetry.collectors.kube_state.collector import KINDS
from tests.collectors import real_kube_state
from tests.collectors.real_kube_state import PROGRAM, ours, parsed, recorded, types

# Not watched by the real program unless configured, and slices without its mix-up of labels.
ADDED = "kube_endpointslice_"
# The recording has no object of this kind: the attach-detach controller takes away what no pod uses.
UNSEEN = "kube_volumeattachment_"
LEFT_OUT = {
    "kube_persistentvolume_csi_attributes",
    "kube_pod_nodeselectors",
}


def _check(objects: dict[str, list[object]], exposition: str) -> None:
    real = parsed(exposition)
    mine = {key: value for key, value in ours(objects).items() if not dict(key)["__name__"].startswith(ADDED)}
    assert len(real) > 1000
    assert mine == real


def test_the_same_samples_as_the_real_program_gave() -> None:
    _check(*recorded())


@pytest.mark.skipif(PROGRAM is None, reason="kube-state-metrics is not installed")
def test_the_same_samples_as_the_real_program_gives_now() -> None:
    _check(*real_kube_state.record())


def test_the_same_families_of_the_same_types() -> None:
    real = types(recorded()[1])
    mine = {
        family.name: family.kind
        for kind in KINDS
        for family in kind.families
        if not family.name.startswith((ADDED, UNSEEN))
    }
    assert {name: kind for name, kind in mine.items() if real.get(name) != kind} == {}
    watched = {kind.resource.partition(".")[0] for kind in KINDS}
    assert "replicationcontrollers" not in watched
    absent = {
        name
        for name in real
        if name not in mine and not name.endswith(("_labels", "_annotations")) and "replicationcontroller" not in name
    }
    assert absent <= LEFT_OUT, absent - LEFT_OUT
