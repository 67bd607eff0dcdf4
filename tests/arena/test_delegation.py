"""A delegating cluster forwards every method."""

from __future__ import annotations

import pytest

from srearena.cluster.base import Cluster, DelegatingCluster


@pytest.mark.parametrize("name", [name for name in vars(Cluster) if not name.startswith("_")])
def test_whatever_a_cluster_offers_is_passed_on(name: str) -> None:
    # A method with a default, such as telemetry, would otherwise not reach the inner cluster.
    assert name in vars(DelegatingCluster)
