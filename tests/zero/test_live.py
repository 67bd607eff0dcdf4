"""Live runs: from inside the sandbox the agent reaches its cluster with the real kubectl."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clusters import bare_world, running
from zero import kubeconfigs
from zero.errors import RequestError
from zero.relay import Endpoint

GOOD = '{"entities": [], "propagations": [], "alerts_explained": []}'


@pytest.mark.kubectl
@pytest.mark.parametrize("enclosed", ["require", "off"])
def test_the_agent_reaches_its_cluster(
    enclosed: str, needs_sandbox: None, zero: Callable[..., Any], workspace: Path, tmp_path: Path
) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    command = f"""sh -c '"$1" get namespaces -o name > seen.txt; printf "%s" "$2" > "$3"' agent {kubectl}"""
    with running(bare_world()) as cluster:
        options = ("--kubeconfig", str(cluster.kubeconfig), "--prompt-file", "live_investigation", "--expose", kubectl)
        done = zero(
            *("--cli", "command", "--command", f"{command} '{GOOD}' {{output_file}}", "--sandbox", enclosed, *options),
            after=("exec",),
        )
    assert done.code == 0, done.stderr + (workspace / "traces" / "stdout.log").read_text()
    assert "namespace/kube-system" in (workspace / "seen.txt").read_text()
    assert "$KUBECONFIG" in (workspace / "AGENTS.md").read_text()


def test_a_kubeconfig_has_endpoints_and_files(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "clusters: [{name: a, cluster: {server: 'https://10.0.0.1:6443', certificate-authority: ca.crt}}]\n"
        "users: [{name: u, user: {client-key: /keys/u.key}}]\n"
    )
    found = kubeconfigs.read(path)
    assert found.endpoints == (Endpoint("10.0.0.1", 6443),)
    assert found.files == (path, tmp_path / "ca.crt", Path("/keys/u.key"))


@pytest.mark.parametrize("text", ["", "[]", "clusters: []", "a: ["])
def test_what_is_no_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(RequestError, match="kubeconfig"):
        kubeconfigs.read(path)
    with pytest.raises(RequestError, match="cannot read"):
        kubeconfigs.read(tmp_path / "missing")
