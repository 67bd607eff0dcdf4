"""Runs kubectl on the harness's machine with the agent's identity: no shell, an empty environment, a timeout."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from srearena.conductor.errors import BadAction

TIMEOUT = 60.0
"""Seconds; chosen: long enough for `kubectl wait` and `rollout status` with their usual timeouts."""


class KubectlProcess:
    """Runs kubectl with one identity; the arguments must have passed the policy."""

    def __init__(self, kubeconfig: Path, timeout: float = TIMEOUT) -> None:
        self._kubeconfig = kubeconfig
        self._timeout = timeout
        self._home = Path(tempfile.mkdtemp(prefix="shell-"))

    def close(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)

    def run(self, words: Sequence[str], stdin: str = "") -> tuple[int, str]:
        """Run kubectl and return the exit status and the output."""
        program = shutil.which("kubectl")
        if program is None:
            raise BadAction("kubectl is not installed on this machine (https://kubernetes.io/docs/tasks/tools/)")
        environment = {
            "HOME": str(self._home),
            "KUBECONFIG": str(self._kubeconfig),
            "PATH": os.pathsep.join((str(Path(program).parent), "/usr/bin", "/bin")),
            "KUBECTL_KUBERC": "false",
        }
        process = subprocess.Popen(
            [program, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=self._home,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(stdin.encode(), timeout=self._timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            late = f"\n(stopped after {self._timeout:g} s: `kubectl {shlex.join(words)}` had not finished)"
            return 124, output.decode("utf-8", "replace") + late
        return process.returncode, output.decode("utf-8", "replace")
