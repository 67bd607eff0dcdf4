"""Incidents served by OpenEnv, with the real package."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import httpx
import pytest

from srearena.conductor.worlds import fork_is_safe
from tests.frameworks.environments import environment_variables, example_of, python_with, run_code

pytestmark = pytest.mark.skipif(not fork_is_safe(), reason="episodes are forked on Linux only")
APP = "srearena.frameworks.openenv.app:app"


@contextmanager
def served(python: str, folder: Path) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        port, number = listener.getsockname()[1], listener.fileno()
        variables = environment_variables(SREARENA_STAGES="detection", ENABLE_WEB_INTERFACE="true", HOME=str(folder))
        command = [python, "-m", "uvicorn", APP, "--fd", str(number), "--log-level", "error"]
        server = Popen(command, cwd=folder, env=variables, pass_fds=[number])
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@pytest.mark.timeout(900)
def test_the_example_of_the_documentation_works_and_the_web_interface_answers(tmp_path: Path) -> None:
    python = python_with("openenv", "openenv")
    with served(python, tmp_path) as address:
        assert httpx.get(f"{address}/health", timeout=300).json() == {"status": "healthy"}
        fields = httpx.get(f"{address}/schema", timeout=60).json()["action"]["properties"]
        assert set(fields) == {"text", "metadata"}
        assert httpx.get(f"{address}/web/", timeout=60, follow_redirects=True).status_code == 200
        run_code(python, example_of("openenv.md"), tmp_path, OPENENV_URL=address)
