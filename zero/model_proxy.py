"""A LiteLLM proxy of this run's own: the way to models that do not speak what the CLI speaks.

It is started from the user's `litellm_config.yaml`, or from one written for the one model of the run, on a free
loopback port, and ended with the run. Keys are named in the file (`os.environ/NAME`), never written. Who wants to be
served by it needs its own key, which is the configuration's or made up for the run, and lives in environments only.
"""

from __future__ import annotations

import http.client
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from zero.errors import MissingProgram, RequestError
from zero.processes import MARK, stop, sweep
from zero.providers import Provider

KEY_VARIABLE = "ZERO_PROXY_KEY"  # holds the proxy's key in the agent's process
# It comes with prices. Fetching newer ones at every start takes seconds, and where it fails, the start may too.
_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
START_TIMEOUT = 90.0  # its imports alone take seconds


def config_for(model: str, provider: Provider) -> str:
    """A configuration that serves one model of one provider under its own name."""
    parameters: dict[str, object] = {"model": f"{provider.litellm_prefix}/{model}", "api_base": provider.base_url}
    parameters["use_chat_completions_api"] = True  # whatever LiteLLM thinks that this provider can
    if provider.key_variable:
        parameters["api_key"] = f"os.environ/{provider.key_variable}"
    return yaml.safe_dump(
        {
            "model_list": [{"model_name": model, "litellm_params": parameters}],
            "litellm_settings": {"drop_params": True, "modify_params": True},
        },
        sort_keys=False,
    )


def checked(path: Path) -> Path:
    """A user's configuration, or what is wrong with it."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise RequestError(f"cannot read the LiteLLM configuration {path}: {problem}") from problem
    if not isinstance(document, dict) or not isinstance(document.get("model_list"), list):
        raise RequestError(f"{path} is no LiteLLM configuration: it has no model_list")
    return path


def _master_key(config: Path) -> str:
    """The key that the proxy asks for."""
    settings = (yaml.safe_load(config.read_text(encoding="utf-8")) or {}).get("general_settings") or {}
    told = str(settings.get("master_key") or "os.environ/LITELLM_MASTER_KEY")
    if told.startswith("os.environ/"):
        return os.environ.get(told.removeprefix("os.environ/")) or f"sk-{secrets.token_hex(24)}"
    return told


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _alive(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/health/liveliness")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def running(
    config: Path, log: Path, *, program: str = "litellm", timeout: float = START_TIMEOUT
) -> Iterator[tuple[str, str]]:
    """The proxy until the block ends; gives its address and its key."""
    found = shutil.which(program)
    if found is None:
        raise MissingProgram(
            f"{program} is not installed: pip install 'srearena[litellm]', or give --base-url of a proxy"
        )
    port = _free_port()
    log.parent.mkdir(parents=True, exist_ok=True)
    mark, key = secrets.token_hex(8), _master_key(config)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [found, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={"LITELLM_MASTER_KEY": key, **_QUIET, **os.environ, MARK: mark},
        )
        try:
            deadline = time.monotonic() + timeout
            while not _alive(port):
                if process.poll() is not None:
                    raise MissingProgram(f"the LiteLLM proxy ended at once (code {process.returncode}): see {log}")
                if time.monotonic() > deadline:
                    raise MissingProgram(f"the LiteLLM proxy did not answer within {timeout:.0f} s: see {log}")
                try:
                    process.wait(0.1)
                except subprocess.TimeoutExpired:
                    continue
            yield f"http://127.0.0.1:{port}", key
        finally:
            stop(process)
            sweep(mark)
