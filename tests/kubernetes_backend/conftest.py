"""A cluster of somebody else's, reached by its kubeconfig alone: an embedded one whose time passes by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.service.kubernetes import Kubernetes


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of ledgers, for one test."""
    monkeypatch.setenv("SREARENA_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("SREARENA_CONFIG", raising=False)
    return tmp_path / "state"


@pytest.fixture(scope="module")
def theirs() -> Iterator[Cluster]:
    with start_embedded(speed=4, nodes=2, in_process=True) as cluster:
        yield cluster


@pytest.fixture
def api(theirs: Cluster) -> Iterator[Kubernetes]:
    with Kubernetes(theirs.kubeconfig) as client:
        yield client
