"""The real LiteLLM proxy with the configuration we ship, where it is installed (extra `llm`); the model is scripted."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest
import yaml

from clients.llm.settings import Settings, make_client
from srearena.llm.client import CallStats
from srearena.llm.messages import Message, ModelRequest, Reply, Tool
from tests.llm.model_server import TOKENS_IN, Turn, call, results_in, serving

EXAMPLE = Path(__file__).parents[2] / "litellm_config.yaml"
NAMES = [model["model_name"] for model in yaml.safe_load(EXAMPLE.read_text())["model_list"]]
TOOL = Tool("kubectl", "runs kubectl", {"type": "object", "properties": {"arguments": {"type": "string"}}})
KEY = "key-4711"
MASTER = "sk-" + "5e" * 32
ADDRESSES = {
    "OPENAI_BASE_URL": "/v1",
    "ANTHROPIC_BASE_URL": "",
    "GEMINI_API_BASE": "",
    "OPENROUTER_API_BASE": "/v1",
    "AWS_BEDROCK_RUNTIME_ENDPOINT": "",
}
KEYS = "OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_API_KEY OPENROUTER_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY"


@contextmanager
def proxy(url: str, folder: Path) -> Iterator[str]:
    """`litellm --config litellm_config.yaml`, with every provider at that address."""
    shutil.copy(EXAMPLE, folder / "litellm_config.yaml")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    environment = {
        **os.environ,
        **{name: url + path for name, path in ADDRESSES.items()},
        **dict.fromkeys(KEYS.split(), KEY),
        "AWS_REGION_NAME": "eu-west-1",
        "LITELLM_MASTER_KEY": MASTER,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    }
    command = ["litellm", "--config", "litellm_config.yaml", "--port", str(port), "--host", "127.0.0.1"]
    with (folder / "proxy.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        place = f"http://127.0.0.1:{port}"
        until = monotonic() + 120
        while monotonic() < until and process.poll() is None:
            try:
                if httpx.get(f"{place}/health/liveliness", timeout=5).status_code == 200:
                    break
            except httpx.TransportError:
                sleep(0.5)
        else:
            pytest.fail((folder / "proxy.log").read_text()[-2000:])
        yield place
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.skipif(
    find_spec("litellm") is None or find_spec("apscheduler") is None,
    reason="LiteLLM's proxy is not installed (extra `llm`)",
)
@pytest.mark.timeout(300)
def test_every_model_of_the_example_is_reached_through_the_proxy(tmp_path: Path) -> None:
    def script(body: dict[str, Any], number: int) -> Turn:
        return Turn("seen") if results_in(body) else call("kubectl", arguments="get pods")

    async def talk(place: str, name: str) -> Reply:
        variables = {"LITELLM_BASE_URL": f"{place}/v1", "LITELLM_MASTER_KEY": MASTER}
        settings = Settings.from_options({"model": f"litellm_proxy/{name}"}, variables)
        client = make_client(settings)
        try:
            hello = Message("user", "hello")
            # Not streamed: that is how the scripted model speaks Gemini's and Bedrock's tongues.
            request = ModelRequest(settings.route.model, "be good", (hello,), (TOOL,), stream=False)
            first = await client.complete(request, CallStats())
            answer = Message("tool", "three pods", call_id=first.calls[0].id)
            messages = (hello, first.as_message(), answer)
            return await client.complete(
                ModelRequest(settings.route.model, "be good", messages, (TOOL,), stream=False), CallStats()
            )
        finally:
            await client.aclose()

    with serving(script) as model, proxy(model.url, tmp_path) as place:
        for name in NAMES:
            reply = asyncio.run(talk(place, name))
            assert reply.text == "seen" and reply.usage.tokens_in == TOKENS_IN, name
    paths = " ".join(model.paths)
    for path in ("/v1/messages", ":generateContent", "/converse", "/v1/chat/completions"):
        assert path in paths
