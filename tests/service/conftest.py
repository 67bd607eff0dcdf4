from __future__ import annotations

from collections.abc import Iterator

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.service.kubernetes import Kubernetes


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster whose time passes only where somebody waits."""
    with start_embedded(in_process=True, speed=0) as running:
        yield running


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Kubernetes]:
    with Kubernetes.of(cluster) as client:
        yield client
