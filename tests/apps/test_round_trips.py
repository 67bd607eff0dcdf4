"""An application that is taken away leaves nothing behind."""

from __future__ import annotations

import pytest

from tests.apps.deployed import Deployed, deployed

KINDS = (
    "namespaces",
    "persistentvolumes",
    "clusterroles",
    "clusterrolebindings",
    "customresourcedefinitions",
    "storageclasses",
)


def everything(running: Deployed) -> dict[str, set[str]]:
    return {kind: {obj["metadata"]["name"] for obj in running.api.list(kind)} for kind in KINDS}


@pytest.mark.parametrize("name", ["astronomy-shop", "train-ticket", "fleetcast"])
def test_nothing_is_left(name: str) -> None:
    with deployed(name) as running:
        application = running.application
        assert application is not None
        there = everything(running)
        assert set(application.namespaces) <= there["namespaces"]
        application.delete(running.cluster)
        left = everything(running)
        assert not left["namespaces"] & set(application.namespaces)
        assert not left["persistentvolumes"]
        own = {manifest.name for manifest in application.manifests if manifest.kind.startswith("Cluster")}
        assert not own & (left["clusterroles"] | left["clusterrolebindings"])
        assert not any(name.endswith(".pingcap.com") for name in left["customresourcedefinitions"])
