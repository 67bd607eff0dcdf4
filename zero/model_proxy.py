"""A LiteLLM proxy for one run, for models whose wire format the CLI does not support.

It is started with the user's `litellm_config.yaml`, or with a generated one for the model of the run, on a free
loopback port, and stopped with the run. The file has names of keys (`os.environ/NAME`), never values. Clients need the
proxy's own key, which is configured or generated and exists in environment variables only.
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

from srearena.errors import one_line
from zero.errors import MissingProgram, RequestError
from zero.processes import RUN_TAG, kill_tagged, stop
from zero.providers import Provider

KEY_VARIABLE = "ZERO_PROXY_KEY"  # the proxy's key in the agent's process
# Use the packaged prices: fetching newer ones takes seconds, and a failure may prevent the start.
_SETTINGS = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
START_TIMEOUT = 90.0  # seconds; chosen: imports alone take several on a busy machine


def config_for(model: str, provider: Provider) -> str:
    """A configuration that serves one model of one provider."""
    parameters: dict[str, object] = {"model": f"{provider.litellm_prefix}/{model}", "api_base": provider.base_url}
    parameters["use_chat_completions_api"] = True  # overrides LiteLLM's assumptions about the provider
    if provider.key_variable:
        parameters["api_key"] = f"os.environ/{provider.key_variable}"
    return yaml.safe_dump(
        {
            "model_list": [{"model_name": model, "litellm_params": parameters}],
            "litellm_settings": {"drop_params": True, "modify_params": True},
        },
        sort_keys=False,
    )


def checked_config(path: Path) -> Path:
    """The path of a user's configuration; RequestError if it cannot be used."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise RequestError(f"cannot read the LiteLLM configuration {path}: {one_line(problem)}") from problem
    if not isinstance(document, dict) or not isinstance(document.get("model_list"), list):
        raise RequestError(f"{path} is not a LiteLLM configuration: it has no model_list")
    return path


def _master_key(config: Path) -> str:
    """The key that clients of the proxy need."""
    settings = (yaml.safe_load(config.read_text(encoding="utf-8")) or {}).get("general_settings") or {}
    configured = str(settings.get("master_key") or "os.environ/LITELLM_MASTER_KEY")
    if configured.startswith("os.environ/"):
        return os.environ.get(configured.removeprefix("os.environ/")) or f"sk-{secrets.token_hex(24)}"
    return configured


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
def run_proxy(
    config: Path, log: Path, *, program: str = "litellm", timeout: float = START_TIMEOUT
) -> Iterator[tuple[str, str]]:
    """Run the proxy until the block ends; yields its URL and its key."""
    executable = shutil.which(program)
    if executable is None:
        raise MissingProgram(
            f"{program} is not installed: pip install 'srearena[litellm]', or give --base-url of a proxy"
        )
    port = _free_port()
    log.parent.mkdir(parents=True, exist_ok=True)
    tag, key = secrets.token_hex(8), _master_key(config)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [executable, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={"LITELLM_MASTER_KEY": key, **_SETTINGS, **os.environ, RUN_TAG: tag},
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
            kill_tagged(tag)
