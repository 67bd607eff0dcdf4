"""The connection test reports what does not answer, in one line, without the key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from itbench_evaluations.judge.settings import JudgeSettings
from itbench_leaderboard.connection import ask, check_judge
from itbench_leaderboard.errors import Unreachable
from zero.providers import Provider


class _Model(BaseHTTPRequestHandler):
    asked: list[tuple[str, dict[str, Any]]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append((self.path, body))
        good = self.headers["authorization"] == "Bearer right"
        self.send_response(200 if good else 401)
        self.end_headers()
        self.wfile.write(b"{}" if good else b"bad key")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def address() -> Iterator[str]:
    _Model.asked = []
    with HTTPServer(("127.0.0.1", 0), _Model) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.parametrize(
    ("wire", "path"),
    [("responses", "/v1/responses"), ("chat", "/v1/chat/completions"), ("messages", "/v1/v1/messages")],
)
def test_a_model_is_asked_in_its_own_way(address: str, wire: str, path: str) -> None:
    ask(Provider("p", address, wire_api=wire), "m", "right", "agent a")
    assert [(asked, body["model"]) for asked, body in _Model.asked] == [(path, "m")]


def test_a_refusal_is_told_without_the_key(address: str) -> None:
    with pytest.raises(Unreachable, match=r"judge: m at .* answers 401: bad key") as raised:
        check_judge(JudgeSettings(address, "secret-key", ("m",)))
    assert "secret-key" not in str(raised.value)


def test_nobody_there() -> None:
    with pytest.raises(Unreachable, match="does not answer"):
        ask(Provider("p", "http://127.0.0.1:9/v1"), "m", "", "agent a")
