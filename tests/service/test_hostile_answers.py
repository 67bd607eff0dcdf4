"""Answers of a program under test that are made to stop whoever reads them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from srearena.service import transport
from srearena.service.errors import Unreachable
from srearena.service.frontend import Frontend
from srearena.service.journeys import Answer, Journey, Visitor
from srearena.service.kubernetes import Kubernetes
from srearena.service.transport import Transport

Answering = Callable[[BaseHTTPRequestHandler], object]


class _Server:
    """An API server whose proxy passes on what a program answers; counts the requests."""

    def __init__(self, folder: Path) -> None:
        self.requests = 0
        self.answering: Answering = lambda handler: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests += 1
                outer.answering(self)

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.ended = threading.Event()
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self._server.server_port}"}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        users = [{"name": "u", "user": {}}]
        config = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "c"}
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        self.transport = Transport(path, timeout=0.3)

    def close(self) -> None:
        self.ended.set()
        self.transport.close()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[_Server]:
    found = _Server(tmp_path)
    yield found
    found.close()


def _begin(handler: BaseHTTPRequestHandler, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()


def test_an_answer_that_never_ends_ends_the_request(server: _Server) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        _begin(handler)
        while not server.ended.wait(0.05):  # always sooner than any time limit of a single read
            handler.wfile.write(b".")

    server.answering = drip
    with pytest.raises(Unreachable, match="did not end in time"):
        server.transport.send("GET", "/proxy", proxied=True)


def test_an_answer_without_bounds_ends_the_request(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def flood(handler: BaseHTTPRequestHandler) -> None:
        _begin(handler)
        while not server.ended.is_set():
            handler.wfile.write(b"." * 1024)

    server.answering = flood
    monkeypatch.setattr(transport, "_LARGEST_ANSWER", 1 << 16)
    with pytest.raises(Unreachable, match="is longer than"):
        server.transport.send("GET", "/proxy", proxied=True, timeout=60.0)


def test_a_program_cannot_have_its_caller_wait_and_ask_again(server: _Server) -> None:
    server.answering = lambda handler: _begin(handler, 429, Retry_After="10", Content_Length="0")
    assert server.transport.send("GET", "/proxy", proxied=True).status == 429
    assert server.requests == 1


def test_the_whole_of_an_ordinary_answer_is_read(server: _Server) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        _begin(handler, Content_Length="300000")
        handler.wfile.write(b"x" * 300_000)

    server.answering = answer
    assert server.transport.send("GET", "/proxy", proxied=True, timeout=60.0).body == b"x" * 300_000


@pytest.mark.parametrize(
    "steps",
    [
        lambda answer: answer["features"][0],
        lambda answer: answer[0]["id"],
        lambda answer: answer.get("id"),
        lambda answer: int(answer["id"]),
    ],
)
@pytest.mark.parametrize("text", ["[]", "{}", '{"id": "x"}', '["x"]', "7", "[" * 100_000])
def test_an_answer_of_another_form_is_a_complaint_of_the_journey(steps: Callable[[Any], object], text: str) -> None:
    def play(visitor: Visitor) -> None:
        steps(Answer("GET /", 200, text).document)
        raise ValueError("the form fits this step")

    listed = {"metadata": {"resourceVersion": "1"}}

    class Api:
        def raw(self, path: str, query: object = None) -> object:
            return listed

    frontend = cast(Frontend, SimpleNamespace(namespace="shop"))
    assert Journey("visit", play).play(cast(Kubernetes, Api()), frontend, "shop")
