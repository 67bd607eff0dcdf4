"""A cluster that stands for another one leaves nothing of it out."""

from __future__ import annotations

import pytest

from srearena.cluster.base import Cluster, DelegatingCluster


@pytest.mark.parametrize("name", [name for name in vars(Cluster) if not name.startswith("_")])
def test_whatever_a_cluster_offers_is_passed_on(name: str) -> None:
    # What has a default, such as telemetry, would otherwise be answered with that instead of the other's answer.
    assert name in vars(DelegatingCluster)
