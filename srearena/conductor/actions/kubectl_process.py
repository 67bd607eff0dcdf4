"""Runs kubectl on the harness's machine with the agent's identity: no shell, no variables, limited time and output.

Where it is not installed, the commands that agents use most are performed by requests to the API.
"""

from __future__ import annotations

import os
import selectors
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from srearena.conductor.actions.api_kubectl import ApiKubectl
from srearena.conductor.actions.time_limit import TimeLimit
from srearena.go_programs import NO_COLLECTION
from srearena.temporary import make_folder

TIMEOUT = 60.0
"""Seconds; chosen: long enough for `kubectl wait` and `rollout status` with their usual timeouts."""
LONGEST_OUTPUT = 8 * 1024 * 1024
"""Bytes; every object of the largest application as YAML is a quarter of it."""
_POLL = 0.2


class KubectlProcess:
    """Runs kubectl with one identity; the arguments must have passed the policy."""

    def __init__(self, kubeconfig: Path, timeout: float = TIMEOUT) -> None:
        self._kubeconfig = kubeconfig
        self._timeout = timeout
        self._home = make_folder("shell")
        self._owner = os.getpid()
        self._substitute: ApiKubectl | None = None

    def close(self) -> None:
        if self._substitute is not None:
            self._substitute.close()
        if os.getpid() == self._owner:  # other forks of the process that made it have it, too
            shutil.rmtree(self._home, ignore_errors=True)

    def run(self, words: Sequence[str], stdin: str = "", limit: TimeLimit | None = None) -> tuple[int, str]:
        """Run kubectl and return the exit status and the output."""
        program = shutil.which("kubectl")
        if program is None:
            self._substitute = self._substitute or ApiKubectl(self._kubeconfig)
            return self._substitute.run(words, stdin)
        environment = {
            "HOME": str(self._home),
            "KUBECONFIG": str(self._kubeconfig),
            "PATH": os.pathsep.join((str(Path(program).parent), "/usr/bin", "/bin")),
            "KUBECTL_KUBERC": "false",
            **NO_COLLECTION,
        }
        # From a file, so that nothing has to be written while the output is read.
        with tempfile.TemporaryFile() as standard_input:
            standard_input.write(stdin.encode())
            standard_input.seek(0)
            process = subprocess.Popen(
                [program, *words],
                stdin=standard_input,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._home,
                start_new_session=True,
            )
        output, reason = self._output(process, limit)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        text = output.decode("utf-8", "replace")
        if reason:
            return 124, f"{text}\n(stopped {reason}: `kubectl {shlex.join(words)}` had not finished)"
        return status, text

    def _output(self, process: subprocess.Popen[bytes], limit: TimeLimit | None) -> tuple[bytes, str]:
        """Read until the end of the output; returns also why kubectl must be stopped, if it must."""
        assert process.stdout is not None
        deadline = monotonic() + self._timeout
        output = bytearray()
        with process.stdout as pipe, selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while True:
                if monotonic() >= deadline:
                    return bytes(output), f"after {self._timeout:g} s"
                if limit is not None and limit.reached:
                    return bytes(output), "at the time limit"
                if not selector.select(_POLL):
                    continue
                data = os.read(pipe.fileno(), 65536)
                if not data:
                    return bytes(output), ""
                output += data
                if len(output) > LONGEST_OUTPUT:
                    return bytes(output[:LONGEST_OUTPUT]), f"after {LONGEST_OUTPUT >> 20} MiB of output"
