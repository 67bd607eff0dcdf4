"""kubectl on the harness's machine as the agent: no shell, an empty environment and home, and an end to every run."""

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


class KubectlProcess:
    """Runs kubectl with one identity; the words must have been checked."""

    def __init__(self, kubeconfig: Path, timeout: float = TIMEOUT) -> None:
        self._kubeconfig = kubeconfig
        self._timeout = timeout
        self._home = Path(tempfile.mkdtemp(prefix="shell-"))

    def close(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)

    def run(self, words: Sequence[str], stdin: str = "") -> tuple[int, str]:
        """The exit status, and all that it printed."""
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
            printed, _ = process.communicate(stdin.encode(), timeout=self._timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, _ = process.communicate()
            late = f"\n(stopped after {self._timeout:g} s: `kubectl {shlex.join(words)}` had not ended)"
            return 124, printed.decode("utf-8", "replace") + late
        return process.returncode, printed.decode("utf-8", "replace")
