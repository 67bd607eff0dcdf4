"""exec and attach: commands in running pods, over WebSocket and through kubectl, which also speaks SPDY."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import websocket

from srearena.cluster.embedded.api.spdy_sockets import SpdySocket
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from tests.clusters import SUPERUSER, RunningApi

POD = "/api/v1/namespaces/default/pods/talker"
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"


@contextmanager
def socket(api: RunningApi, path: str, *protocols: str) -> Iterator[websocket.WebSocket]:
    token = api.call(lambda: api.server.credentials.token(SUPERUSER))
    opened = websocket.create_connection(
        f"{api.url.replace('https', 'wss')}{path}",
        subprotocols=list(protocols),
        header=[f"Authorization: Bearer {token}"],
        sslopt={"ca_certs": str(api.ca)},
        timeout=20,
    )
    try:
        yield opened
    finally:
        opened.close(timeout=1)
        opened.shutdown()


def _command(*words: str, **streams: int) -> str:
    query = "&".join([*(f"command={word}" for word in words), *(f"{k}={v}" for k, v in streams.items())])
    return f"{POD}/exec?container=main&{query}"


def _conversation(opened: websocket.WebSocket) -> tuple[bytes, bytes, dict[str, Any]]:
    """Standard output, standard error and the status, once the server has closed the connection."""
    channels: dict[int, bytes] = {1: b"", 2: b"", 3: b""}
    while True:
        opcode, data = opened.recv_data()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            return channels[1], channels[2], json.loads(channels[3])
        channels[data[0]] += data[1:]


@pytest.mark.parametrize("protocol", [V4, V5])
def test_a_command_gives_its_output_and_its_status(pods: RunningApi, protocol: str) -> None:
    with socket(pods, _command("echo", "hello", stdout=1, stderr=1), protocol) as opened:
        assert opened.getsubprotocol() == protocol
        assert opened.recv() == b"\x01", "the first message says that the connection stands"
        assert _conversation(opened) == (b"hello\n", b"", {"metadata": {}, "status": "Success"})


def test_the_first_protocol_has_no_status(pods: RunningApi) -> None:
    for command, message in ((("true",), b""), (("false",), b"exit code 1")):
        with socket(pods, _command(*command, stdout=1), "channel.k8s.io") as opened:
            channels = {1: b"", 3: b""}
            while True:
                opcode, data = opened.recv_data()
                if opcode == websocket.ABNF.OPCODE_CLOSE:
                    break
                channels[data[0]] += data[1:]
            assert channels[1] == b"" and channels[3].endswith(message) and bool(channels[3]) == bool(message)


def test_logs_come_over_a_websocket_too(pods: RunningApi) -> None:
    with socket(
        pods, "/api/v1/namespaces/default/pods/talker/log?container=main&tailLines=2", "binary.k8s.io"
    ) as opened:
        opcode, data = opened.recv_data()
        assert opcode == websocket.ABNF.OPCODE_BINARY
        assert data.startswith(b"line ") and data.count(b"\n") == 2
        assert opened.recv_data()[0] == websocket.ABNF.OPCODE_CLOSE


def test_a_failing_command_tells_its_exit_code(pods: RunningApi) -> None:
    script = "echo%20out;%20echo%20err%20%3E%262;%20exit%203"
    with socket(pods, _command("sh", "-c", script, stdout=1, stderr=1), V5) as opened:
        out, err, status = _conversation(opened)
    assert (out, err) == (b"out\n", b"err\n")
    assert status["status"] == "Failure" and status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


def test_input_reaches_the_command_until_it_is_closed(pods: RunningApi) -> None:
    with socket(pods, _command("cat", stdin=1, stdout=1), V5) as opened:
        opened.send_binary(b"\x00first ")
        opened.send_binary(b"\x00second")
        opened.send_binary(b"\xff\x00")
        assert _conversation(opened)[0] == b"first second"


def test_much_data_both_ways_is_neither_lost_nor_mixed(pods: RunningApi) -> None:
    sent = bytes(range(256)) * 2048
    with socket(pods, _command("cat", stdin=1, stdout=1), V5) as opened:
        for start in range(0, len(sent), 10_000):
            opened.send_binary(b"\x00" + sent[start : start + 10_000])
        opened.send_binary(b"\xff\x00")
        assert _conversation(opened)[0] == sent


def test_a_terminal_echoes_and_knows_its_size(pods: RunningApi) -> None:
    with socket(pods, _command("sh", stdin=1, stdout=1, tty=1), V5) as opened:
        opened.send_binary(b'\x04{"Width":132,"Height":43}')
        opened.send_binary(b"\x00echo typed\r")
        opened.send_binary(b"\x00exit 4\r")
        out, _, status = _conversation(opened)
    assert b"echo typed\r\n" in out and b"typed\r\n" in out
    assert status["details"]["causes"][0]["message"] == "4"


def test_what_cannot_be_executed_is_told_on_the_error_channel(pods: RunningApi) -> None:
    with socket(pods, _command("nosuch", stdout=1), V5) as opened:
        _, _, status = _conversation(opened)
    assert status["reason"] == "InternalError"
    assert 'exec: "nosuch": executable file not found in $PATH' in status["message"]


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        (_command("ls"), 400, "you must specify at least one of stdin, stdout, stderr"),
        (f"{POD}/exec?container=main&stdout=1", 400, "at least one command"),
        (f"{POD}/exec?container=ghost&stdout=1&command=ls", 400, "container ghost is not valid for pod talker"),
        (f"{POD}/exec?stdout=1&command=ls", 400, "choose one of: [main web]"),
        (POD.replace("talker", "ghost") + "/exec?stdout=1&command=ls", 404, 'pods "ghost" not found'),
        ("/api/v1/namespaces/default/pods", 404, ""),
    ],
)
def test_a_bad_request_is_refused_before_the_upgrade(pods: RunningApi, path: str, code: int, text: str) -> None:
    with pytest.raises(websocket.WebSocketBadStatusException) as refused, socket(pods, path, V5):
        pass
    assert refused.value.status_code == code
    body = refused.value.resp_body.decode()
    assert text in body.replace('\\"', '"')


class _NoCommands(Plugin):
    """Refuses exec, and keeps what it was given."""

    def __init__(self) -> None:
        self.options: list[Obj | None] = []

    def validate(self, attributes: Attributes) -> None:
        if attributes.is_for("pods", "CONNECT", subresource="exec"):
            self.options.append(attributes.obj)
            raise attributes.refusal("no commands")


def test_admission_decides_about_connections(pods: RunningApi) -> None:
    plugin, plugins = _NoCommands(), pods.world.registry.admission.plugins
    pods.call(lambda: plugins.append(plugin))
    try:
        with (
            pytest.raises(websocket.WebSocketBadStatusException) as refused,
            socket(pods, _command("true", stdout=1), V5),
        ):
            pass
    finally:
        pods.call(lambda: plugins.remove(plugin))
    assert refused.value.status_code == 403
    options = {"kind": "PodExecOptions", "apiVersion": "v1", "stdout": True, "container": "main", "command": ["true"]}
    assert plugin.options == [options]


def test_unknown_subprotocols_are_refused(pods: RunningApi) -> None:
    with (
        pytest.raises(websocket.WebSocketBadStatusException) as refused,
        socket(pods, _command("ls", stdout=1), "v9.channel.k8s.io"),
    ):
        pass
    assert refused.value.status_code == 400


def test_exec_without_an_upgrade_needs_one(pods: RunningApi) -> None:
    with pods.http() as client:
        assert client.post(_command("ls", stdout=1)).json()["message"] == "Upgrade request required"


def test_a_client_that_vanishes_ends_its_session(pods: RunningApi) -> None:
    for _ in range(3):
        with socket(pods, _command("cat", stdin=1, stdout=1), V5) as opened:
            opened.send_binary(b"\x00x")
            opened.sock.close()

    async def idle() -> bool:
        for _ in range(200):
            if not pods.server.busy:
                return True
            await asyncio.sleep(0.02)
        return False

    assert pods.wait(idle())


def test_attaching_shows_what_is_said_from_now_on(pods: RunningApi) -> None:
    with socket(pods, f"{POD}/attach?container=main&stdout=1", V5) as opened:
        assert opened.recv() == b"\x01"
        pods.advance(2)
        assert opened.recv().startswith(b"\x01line ")


@pytest.fixture(params=["websocket", "spdy"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What kubectl upgrades its connections to; before 1.31 it has SPDY only, and the variables mean nothing to it."""
    upgrades: list[bool] = []
    accept = SpdySocket.accept

    async def noted(socket: SpdySocket) -> None:
        upgrades.append(True)
        await accept(socket)

    monkeypatch.setattr(SpdySocket, "accept", noted)
    if request.param == "spdy":
        for action in ("REMOTE_COMMAND", "PORT_FORWARD"):
            monkeypatch.setenv(f"KUBECTL_{action}_WEBSOCKETS", "false")
    yield
    assert upgrades or request.param == "websocket"


@pytest.mark.kubectl
@pytest.mark.usefixtures("transport")
def test_kubectl_exec(pods: RunningApi) -> None:
    assert pods.kubectl("exec", "talker", "-c", "main", "--", "echo", "hi").stdout == "hi\n"
    done = pods.kubectl("exec", "talker", "-c", "main", "--", "sh", "-c", "echo no >&2; exit 7", check=False)
    assert done.returncode == 7 and "no\n" in done.stderr
    assert "command terminated with exit code 7" in done.stderr
    assert pods.kubectl("exec", "-i", "talker", "-c", "main", "--", "cat", stdin="piped").stdout == "piped"
    long = "x" * 300_000
    assert pods.kubectl("exec", "-i", "talker", "-c", "main", "--", "cat", stdin=long).stdout == long
    done = pods.kubectl("exec", "talker", "-c", "ghost", "--", "ls", check=False)
    assert "container ghost is not valid for pod talker" in done.stderr


@pytest.mark.kubectl
@pytest.mark.usefixtures("transport")
def test_kubectl_cp(pods: RunningApi, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("from outside")
    pods.kubectl("cp", str(tmp_path / "note"), "talker:/tmp/note", "-c", "main")
    assert pods.kubectl("exec", "talker", "-c", "main", "--", "cat", "/tmp/note").stdout == "from outside"
    pods.kubectl("cp", "talker:/tmp/note", str(tmp_path / "back"), "-c", "main")
    assert (tmp_path / "back").read_text() == "from outside"


@pytest.mark.kubectl
@pytest.mark.usefixtures("transport")
def test_kubectl_attach_and_exec_with_a_terminal(pods: RunningApi) -> None:
    # `script` gives kubectl a terminal of its own, as a person's shell would.
    exec_ = f"kubectl --kubeconfig={pods.kubeconfig} exec -it talker -c main -- sh"
    done = subprocess.run(
        ["script", "-qec", exec_, "/dev/null"],
        input="echo in a terminal\nexit 5\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "in a terminal" in done.stdout
    assert done.returncode == 5, done.stdout
