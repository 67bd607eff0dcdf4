"""A manifest that was always applied by the client, applied by the server from now on, with the real kubectl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.clusters import RunningApi, bare_world, running
from tests.registry.cases import deployment


def _owners(api: RunningApi) -> set[tuple[str, str]]:
    found = json.loads(api.kubectl("get", "deployment", "web", "--show-managed-fields", "-o", "json").stdout)
    return {(entry["manager"], entry["operation"]) for entry in found["metadata"]["managedFields"]}


@pytest.mark.kubectl
def test_kubectl_hands_its_fields_from_client_side_to_server_side_apply(tmp_path: Path) -> None:
    manifest = tmp_path / "web.yaml"
    manifest.write_text(yaml.safe_dump(deployment(minReadySeconds=7)))
    with running(bare_world()) as api:
        assert api.kubectl("apply", "-f", str(manifest)).returncode == 0
        assert _owners(api) == {("kubectl-client-side-apply", "Update")}
        assert api.kubectl("apply", "--server-side", "-f", str(manifest)).returncode == 0
        assert _owners(api) == {("kubectl", "Apply"), ("kubectl-last-applied", "Apply")}
        # What is no longer in the manifest goes, although it was once set by the client's own apply.
        manifest.write_text(yaml.safe_dump(deployment()))
        assert api.kubectl("apply", "--server-side", "-f", str(manifest)).returncode == 0
        spec = json.loads(api.kubectl("get", "deployment", "web", "-o", "json").stdout)["spec"]
        assert "minReadySeconds" not in spec
