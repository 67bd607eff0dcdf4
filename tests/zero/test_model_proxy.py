"""The LiteLLM proxy: configuration without secrets, started and stopped with the run, errors in one line."""

from __future__ import annotations

import http.client
import sys
import textwrap
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.zero.watching import goes
from zero import model_proxy
from zero.errors import MissingProgram, RequestError
from zero.providers import Provider

# Answers like the real one, prints its arguments and environment, and has a child in its own session.
FAKE = """
import http.server, json, os, subprocess, sys, threading
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
keys = {"key": os.environ.get("OR_API_KEY"), "own": os.environ.get("LITELLM_MASTER_KEY")}
print(json.dumps({"arguments": arguments, "child": child.pid, **keys}), flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health/liveliness" else 404)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer((arguments["--host"], int(arguments["--port"])), Handler).serve_forever()
"""


def executable(place: Path, body: str) -> str:
    path = place / "fake-litellm"
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}")
    path.chmod(0o755)
    return str(path)


def test_the_configuration_names_the_key_and_has_no_value() -> None:
    text = model_proxy.config_for(
        "google/gemini-2.5-pro", Provider("openrouter", "https://o/v1", "OR_API_KEY", "chat", "openrouter")
    )
    document = yaml.safe_load(text)
    [model] = document["model_list"]
    assert model["model_name"] == "google/gemini-2.5-pro"
    assert model["litellm_params"] == {
        "model": "openrouter/google/gemini-2.5-pro",
        "api_base": "https://o/v1",
        "use_chat_completions_api": True,
        "api_key": "os.environ/OR_API_KEY",
    }


def test_it_runs_for_the_block_and_its_children_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OR_API_KEY", "k")
    config, log = tmp_path / "c.yaml", tmp_path / "logs" / "litellm.log"
    config.write_text("model_list: []")
    with model_proxy.run_proxy(config, log, program=executable(tmp_path, FAKE)) as (url, key):
        place = urlsplit(url)
        assert (place.hostname, place.path) == ("127.0.0.1", "")
        connection = http.client.HTTPConnection("127.0.0.1", place.port or 0, timeout=5)
        connection.request("GET", "/health/liveliness")
        assert connection.getresponse().status == 200
        connection.close()
    report: dict[str, Any] = yaml.safe_load(log.read_text().splitlines()[0])
    assert report["arguments"]["--config"] == str(config)
    assert (report["key"], report["own"]) == ("k", key), "the provider's key, and one of its own"
    assert len(key) > 30
    goes(report["child"])


@pytest.mark.parametrize(
    ("body", "says"),
    [("raise SystemExit(3)", "ended at once .code 3."), ("import time; time.sleep(600)", "did not answer")],
)
def test_a_proxy_that_does_not_start_is_reported(tmp_path: Path, body: str, says: str) -> None:
    program = executable(tmp_path, body)
    (tmp_path / "c").write_text("model_list: []")
    with (
        pytest.raises(MissingProgram, match=says),
        model_proxy.run_proxy(tmp_path / "c", tmp_path / "log", program=program, timeout=1.5),
    ):
        pass


def test_a_missing_proxy_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(MissingProgram, match=r"srearena\[litellm\]"),
        model_proxy.run_proxy(tmp_path, tmp_path / "log", program="no-such-litellm"),
    ):
        pass


@pytest.mark.parametrize("text", ["[]", "a: 1", ":\n- ]"])
def test_a_users_configuration_is_checked(tmp_path: Path, text: str) -> None:
    path = tmp_path / "litellm_config.yaml"
    path.write_text(text)
    with pytest.raises(RequestError, match=r"litellm_config\.yaml"):
        model_proxy.checked_config(path)


def test_a_key_in_the_users_configuration_is_the_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PROXY_KEY", "sk-mine")
    config = tmp_path / "c.yaml"
    config.write_text("model_list: []\ngeneral_settings: {master_key: os.environ/MY_PROXY_KEY}")
    with model_proxy.run_proxy(config, tmp_path / "log", program=executable(tmp_path, FAKE)) as (_, key):
        assert key == "sk-mine"
