"""The sandbox: the evidence without its key, a workspace, no other file, no other process, no network but the relay."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from srearena import ground_truth
from zero.errors import RequestError
from zero.relay import Endpoint, run_relay
from zero.sandbox import _package_paths

GOOD = '{"entities": [], "propagations": [], "alerts_explained": []}'
Agent = Callable[[str], str]
Zero = Callable[..., Any]


@contextmanager
def web(text: str) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


LOOKS = """
import socket, urllib.request
def attempt(action):
    try:
        return action()
    except Exception as problem:
        return f"{type(problem).__name__}"
def fetch(port):
    return urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).read().decode()
spec = json.loads(pathlib.Path("spec.json").read_text())
snapshot = pathlib.Path(spec["snapshot"])
found = {
    "files": sorted(p.name for p in snapshot.iterdir()),
    "readable": attempt(lambda: len((snapshot / "otel_logs_raw.tsv").read_text()) > 100),
    "written": attempt(lambda: (snapshot / "new").write_text("x")),
    "overwritten": attempt(lambda: (snapshot / "otel_logs_raw.tsv").write_text("x")),
    "key": attempt(lambda: (snapshot / "ground_truth.yaml").read_text()),
    "keys": [
        str(p)
        for p in pathlib.Path("/").glob("*/**/ground_truth*")
        if "/proc/" not in str(p) and str(p) != spec["reader"]
    ][:5],
    "secret": attempt(lambda: pathlib.Path(spec["secret"]).read_text()),
    "record": attempt(lambda: pathlib.Path("traces/x").write_text("x")),
    "home": attempt(lambda: sorted(os.listdir("/root")) + sorted(os.listdir("/home"))),
    "processes": len([p for p in os.listdir("/proc") if p.isdigit()]),
    "allowed": attempt(lambda: fetch(spec["allowed"])),
    "refused": attempt(lambda: fetch(spec["refused"])),
    "outside": attempt(lambda: socket.create_connection(("192.0.2.1", 80), 3)),
    "problems": attempt(lambda: __import__("itbench_evaluations").__file__),
}
pathlib.Path("found.json").write_text(json.dumps(found))
"""


def test_the_agent_sees_its_room_and_nothing_else(
    needs_sandbox: None, zero: Zero, agent: Agent, workspace: Path, snapshot: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("s")
    command = agent(f"{LOOKS}\npathlib.Path(sys.argv[2]).write_text('{GOOD}')")
    workspace.mkdir()
    with web("hello") as allowed, web("never") as refused:
        spec = {
            "snapshot": str(snapshot),
            "secret": str(secret),
            "allowed": allowed,
            "refused": refused,
            "reader": str(Path(ground_truth.__file__).parent),  # the package that reads keys, not a key
        }
        (workspace / "spec.json").write_text(json.dumps(spec))
        done = zero(
            *("--cli", "command", "--command", command, "--sandbox", "require", "-r", str(snapshot)),
            *("--expose", str(tmp_path / "agents"), "--allow-endpoint", f"127.0.0.1:{allowed}"),
            after=("exec",),
        )
    assert done.code == 0, done.stderr + (workspace / "traces" / "stdout.log").read_text()
    found = json.loads((workspace / "found.json").read_text())
    assert "otel_logs_raw.tsv" in found["files"] and "ground_truth.yaml" not in found["files"]
    assert found["readable"] is True
    assert found["written"] == found["overwritten"] == found["record"] == "OSError"
    assert found["key"] == found["secret"] == "FileNotFoundError"
    assert found["keys"] == []
    assert found["processes"] <= 4
    assert found["allowed"] == "hello"
    assert found["refused"] == "URLError"
    assert found["outside"] == "OSError"
    assert found["problems"] in ("ModuleNotFoundError", "ImportError", None), (
        "the judge is none of the agent's business"
    )
    assert (snapshot / "ground_truth.yaml").exists() and not (snapshot / "new").exists()


HOSTILE = """
for name in ("mcp.json", "AGENTS.md", ".home"):
    path = pathlib.Path(name)
    if path.is_dir():
        __import__("shutil").rmtree(path)
    elif path.exists():
        path.unlink()
if sys.argv[1] == "1":
    os.mkfifo("mcp.json")
    os.symlink(os.environ["VICTIM"], "AGENTS.md")
    os.symlink(os.path.dirname(os.environ["VICTIM"]), ".home")
    os.symlink(os.environ["VICTIM"], sys.argv[2])
elif sys.argv[1] == "2":
    os.mkdir("mcp.json")
    os.unlink(sys.argv[2])
    os.mkfifo(sys.argv[2])
else:
    os.unlink(sys.argv[2])
    pathlib.Path(sys.argv[2]).write_text('{answer}')
print("attempt", sys.argv[1])
"""


def test_what_an_agent_puts_in_our_way_leads_us_nowhere(
    needs_sandbox: None, zero: Zero, agent: Agent, workspace: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "outside" / "victim.txt"
    victim.parent.mkdir()
    victim.write_text("untouched")
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Do it.\n")
    command = agent(HOSTILE.replace("{answer}", GOOD))
    options = ("--cli", "command", "--command", command, "--sandbox", "require", "--pass-env", "VICTIM")
    more = ("--prompt-file", str(prompt), "--expose", str(tmp_path / "agents"))
    for _ in range(2):  # and neither does what an earlier run left behind
        done = zero(*options, *more, after=("exec",), VICTIM=str(victim))
        assert done.code == 0, done.stderr + (workspace / "traces" / "stdout.log").read_text()
        assert "not a regular file" in (workspace / "traces" / "run.json").read_text()
        assert victim.read_text() == "untouched"
        assert [path.name for path in victim.parent.iterdir()] == ["victim.txt"]


def test_no_sandbox_can_be_a_reason_to_refuse(zero: Zero, agent: Agent, tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    command = agent("print('never')")
    refused = zero("--cli", "command", "--command", command, "--sandbox", "require", after=("exec",), PATH=str(empty))
    assert refused.code == 1
    assert "no sandbox: bubblewrap is not installed" in refused.stderr
    warned = zero("--cli", "command", "--command", command, "--max-retries", "0", after=("exec",), PATH=str(empty))
    assert warned.code == 3
    assert "no sandbox" in warned.stderr


def test_the_proxy_opens_tunnels_to_allowed_endpoints_and_refuses_others() -> None:
    with web("allowed") as allowed, web("other") as other, run_relay([Endpoint("127.0.0.2", allowed)]) as relay:
        assert relay.forwards == ["3128=/run/zero/proxy"]
        assert relay.environment["HTTPS_PROXY"] == "http://127.0.0.1:3128"

        def ask(request: str) -> str:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(10)
            connection.connect(str(relay.directory / "proxy"))
            connection.sendall(request.encode())
            reply = b""
            while data := connection.recv(4096):
                reply += data
                if reply.endswith(b"established\r\n\r\n"):
                    connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            connection.close()
            return reply.decode()

        refused = ask(f"CONNECT 127.0.0.1:{other} HTTP/1.1\r\n\r\n")
        assert refused.startswith("HTTP/1.1 403")
        assert relay.refused == [f"127.0.0.1:{other}"]
        assert ask("nonsense\r\n\r\n") == ""
        # 127.0.0.2 is this machine as well, but not by a name that counts as local; nothing listens there for `web`.
        assert ask(f"CONNECT 127.0.0.2:{allowed} HTTP/1.1\r\n\r\n") == ""
    assert not relay.directory.exists()


def test_a_tunnel_carries_both_ways() -> None:
    server = socket.create_server(("127.0.0.3", 0))
    server.settimeout(10)
    port = server.getsockname()[1]

    def echo() -> None:
        connection, _ = server.accept()
        with connection:
            while data := connection.recv(4096):
                connection.sendall(data.upper())

    thread = threading.Thread(target=echo, daemon=True)
    thread.start()
    with server, run_relay([Endpoint("127.0.0.3", port)]) as relay:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(10)
        connection.connect(str(relay.directory / "proxy"))
        connection.sendall(f"CONNECT 127.0.0.3:{port} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(b"hello")
        assert connection.recv(4096) == b"HELLO"
        connection.close()
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("https://api.openai.com/v1", "api.openai.com", 443),
        ("http://localhost:4000", "localhost", 4000),
        ("h:1", "h", 1),
    ],
)
def test_endpoints_are_read_from_urls_and_pairs(text: str, host: str, port: int) -> None:
    assert Endpoint.parse(text) == Endpoint(host, port)


@pytest.mark.parametrize("text", ["", "nothing", "http://", "h:99999"])
def test_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="not an endpoint"):
        Endpoint.parse(text)


def test_a_real_server_is_reached_through_a_forward() -> None:
    with web("hello") as port, run_relay([Endpoint("127.0.0.1", port)]) as relay:
        assert relay.forwards == [f"{port}=/run/zero/{port}"]
        connection = http.client.HTTPConnection("x")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(os.path.join(relay.directory, str(port)))
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"hello"
        connection.close()


def test_the_sandbox_contains_every_module_that_the_offline_tools_import() -> None:
    program = (
        "import pkgutil, sys\n"
        "from sre_tools import offline_incident_analysis as server\n"
        "for module in pkgutil.walk_packages(server.__path__, server.__name__ + '.'):\n"
        "    __import__(module.name)\n"
        "print(*(module.__file__ for name, module in list(sys.modules.items())"
        " if name.partition('.')[0] in ('srearena', 'sre_tools')), sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = [Path(line) for line in done.stdout.splitlines()]
    visible, _ = _package_paths()
    assert len(imported) > 30
    assert [path for path in imported if not any(path.is_relative_to(place) for place in visible)] == []
