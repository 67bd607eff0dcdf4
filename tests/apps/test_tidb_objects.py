"""What the operator makes of a TidbCluster, as pure functions."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from srearena.service.apps.fleetcast.programs.tidb.components import config_map, stateful_set, toml

LEAVES = st.one_of(st.booleans(), st.integers(-(2**62), 2**62), st.text('ab []."\\', max_size=6))
NAMES = st.text("ab-_. 1", min_size=1, max_size=6)
CONFIGS = st.recursive(
    st.dictionaries(NAMES, LEAVES, max_size=3),
    lambda inner: st.dictionaries(NAMES, st.one_of(LEAVES, st.lists(st.integers(), max_size=2), inner), max_size=3),
    max_leaves=8,
)


@given(CONFIGS)
def test_a_configuration_survives_as_toml(config: dict[str, Any]) -> None:
    assert tomllib.loads(toml(config)) == config


def cluster(**tidb: Any) -> dict[str, Any]:
    spec = {"version": "v8.1.0", "tidb": {"replicas": 2, "baseImage": "pingcap/tidb", **tidb}}
    metadata = {"name": "basic", "namespace": "tidb-cluster", "uid": "1"}
    return {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": metadata, "spec": spec}


def test_another_configuration_has_another_name() -> None:
    names = {config_map(cluster(config=config), "tidb")["metadata"]["name"] for config in ({}, {"a": 1}, {"a": 2})}
    assert len(names) == 3


def test_wishes_are_handed_on_as_they_are() -> None:
    wish = cluster(tolerations=[{"effect": "Anything"}], statefulSetUpdateStrategy="Whatever", image="acme/db:1")
    found = stateful_set(wish, "tidb", "settings")["spec"]
    assert found["template"]["spec"]["tolerations"] == [{"effect": "Anything"}]
    assert found["updateStrategy"] == {"type": "Whatever"}
    assert [c["image"] for c in found["template"]["spec"]["containers"]] == ["busybox:1.26.2", "acme/db:1"]
