"""The conversation between clients and servers of datastores ends where the other side is something else."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.cluster.embedded.programs.datastores.dialogue import OPENING, Dialogue

QUESTION = {"sql": "select 1"}


class Peer:
    """A connection to a program that sends these pieces, then hangs up."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.written = b""
        self.closed = False

    async def read(self) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    async def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True


def client_bytes(*messages: dict[str, object], protocol: str = "mysql") -> bytes:
    """What a client sends that opens a conversation with these messages."""
    peer = Peer()

    async def send() -> None:
        dialogue = await Dialogue.open(cast(Connection, peer), protocol)
        for message in messages:
            await dialogue.say(message)

    asyncio.run(send())
    return peer.written


def heard(data: bytes, pieces: int = 1, protocol: str = "mysql") -> tuple[list[dict[str, object]], Peer]:
    """The messages that a server hears on a connection that carries `data`."""
    size = -(-len(data) // pieces)
    first, *rest = (data[start : start + size] for start in range(0, len(data), size))
    peer = Peer(*rest)

    async def receive() -> list[dict[str, object]]:
        dialogue = Dialogue.opened(cast(Connection, peer), first, protocol)
        assert dialogue is not None
        messages = []
        while (message := await dialogue.hear()) is not None:
            messages.append(message)
        return messages

    return asyncio.run(receive()), peer


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_messages_arrive_whole_and_in_order(pieces: int) -> None:
    messages = [QUESTION, {"rows": [1, None], "text": "a\nb"}]
    received, peer = heard(client_bytes(*messages), pieces)
    assert received == messages and not peer.closed


def test_a_server_answers() -> None:
    async def converse() -> dict[str, object] | None:
        reply = Peer()
        server = Dialogue(cast(Connection, reply), "mysql", server=True)
        await server.say({"rows": [1]})
        client = await Dialogue.open(cast(Connection, Peer(reply.written)), "mysql")
        return await client.ask(QUESTION)

    assert asyncio.run(converse()) == {"rows": [1]}


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n", b"[]\n", b"\xff\n", b"-ERR\r\n"])
def test_another_program_in_the_place_of_the_server_is_no_error_of_ours(answer: bytes) -> None:
    peer = Peer(answer)

    async def ask() -> dict[str, object] | None:
        return await (await Dialogue.open(cast(Connection, peer), "mysql")).ask(QUESTION)

    assert asyncio.run(ask()) is None
    assert peer.closed


FIRST = client_bytes(QUESTION, {"sql": "select 2"})
SECOND_LINE = FIRST[len(OPENING) :].split(b"\n")[1] + b"\n"


@pytest.mark.parametrize(
    ("data", "understood"),
    [
        pytest.param(OPENING + b'{"sql":"select 1"}\n', 0, id="made up"),
        pytest.param(FIRST.replace(b"select 1", b"select 3"), 0, id="altered"),
        pytest.param(OPENING + SECOND_LINE, 0, id="out of order"),
        pytest.param(FIRST + SECOND_LINE, 2, id="repeated"),
        pytest.param(client_bytes(QUESTION, protocol="kafka"), 0, id="of another protocol"),
        pytest.param(FIRST, 2, id="relayed"),
    ],
)
def test_only_messages_in_their_place_are_understood(data: bytes, understood: int) -> None:
    """An operator who listened to a conversation cannot make a server read fields that are not there."""
    received, peer = heard(data)
    assert len(received) == understood
    assert peer.closed == (data is not FIRST)


def test_the_first_bytes_do_not_name_the_project() -> None:
    assert b"arena" not in OPENING and not OPENING.strip().isalnum()
