"""A model's endpoint in every wire format: requests, replies, and errors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.llm.client import CallStats, RetryPolicy
from srearena.llm.endpoint import Endpoint
from srearena.llm.errors import ContextTooLong, ModelError, ModelRefused, ModelUnavailable, ToolsUnsupported
from srearena.llm.messages import Message, ModelRequest, Reply, Tool, ToolCall
from srearena.llm.server_sent_events import parse_events
from srearena.llm.wires import WIRES
from tests.llm.model_server import TOKENS_CACHED, TOKENS_IN, TOKENS_OUT, Script, Turn, call, results_in, serving

TOOL = Tool("kubectl", "runs kubectl", {"type": "object", "properties": {"arguments": {"type": "string"}}})
ODD = "two lines\u2028and more\x85 \N{SNOWMAN}"


async def _complete(
    script: Script, wire: str, request: ModelRequest, waits: list[float], policy: RetryPolicy
) -> tuple[Reply, CallStats]:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    stats = CallStats()
    with serving(script) as model:
        endpoint = Endpoint(WIRES[wire], model.base(wire), "key-4711", policy=policy, sleep=sleep)
        try:
            return await endpoint.complete(request, stats), stats
        finally:
            await endpoint.aclose()


def complete(
    script: Script,
    wire: str = "chat",
    *,
    stream: bool = True,
    messages: tuple[Message, ...] = (Message("user", "hello"),),
    waits: list[float] | None = None,
    **patience: Any,
) -> tuple[Reply, CallStats]:
    request = ModelRequest("scripted", "be good", messages, (TOOL,), stream=stream)
    return asyncio.run(_complete(script, wire, request, waits if waits is not None else [], RetryPolicy(**patience)))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_words_calls_and_tokens_come_through(wire: str, stream: bool) -> None:
    turn = Turn(ODD, (("kubectl", {"arguments": "get pods"}), ("kubectl", {"arguments": ODD})))
    reply, stats = complete(lambda body, number: turn, wire, stream=stream)
    assert reply.text == ODD and reply.stop == "calls"
    assert [call.name for call in reply.calls] == ["kubectl", "kubectl"]
    assert len({call.id for call in reply.calls}) == 2
    used = (reply.usage.tokens_in, reply.usage.tokens_out, reply.usage.cached)
    assert used == (TOKENS_IN, TOKENS_OUT, TOKENS_CACHED)
    assert stats.tries == 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_one_connection_carries_a_whole_conversation(wire: str, stream: bool) -> None:
    async def talk() -> int:
        with serving(lambda body, number: Turn("yes"), keep_open=True) as model:
            endpoint = Endpoint(WIRES[wire], model.base(wire))
            for _ in range(3):
                await endpoint.complete(ModelRequest("m", "s", (Message("user", "hello"),), stream=stream), CallStats())
            await endpoint.aclose()
            return len(set(model.clients))

    assert asyncio.run(talk()) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_half_a_surrogate_pair_goes_back_to_the_model(wire: str) -> None:
    heard: list[str] = []

    def script(body: dict[str, Any], number: int) -> Turn:
        heard.append(str(body))
        return Turn("fine")

    conversation = (Message("user", "hello"), Message("assistant", "half \ud83d"), Message("user", "go on"))
    reply, _ = complete(script, wire, messages=conversation)
    assert reply.text == "fine" and "half \\ud83d" in heard[0]


@pytest.mark.parametrize("wire", WIRES)
def test_a_conversation_with_tools_goes_back_whole(wire: str) -> None:
    first, _ = complete(lambda body, number: call("kubectl", arguments="get pods"), wire)
    conversation = (
        Message("user", "hello"),
        first.as_message(),
        Message("tool", "three pods", call_id=first.calls[0].id),
    )
    requests: list[dict[str, Any]] = []

    def script(body: dict[str, Any], number: int) -> Turn:
        requests.append(body)
        return Turn("done")

    reply, _ = complete(script, wire, messages=conversation)
    assert reply.text == "done" and reply.stop == "end" and results_in(requests[0]) == ["three pods"]
    if wire == "responses":
        assert any(item.get("encrypted_content") == "sealed" for item in requests[0]["input"])
    if wire == "messages":
        assert requests[0]["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_breaks_off_is_asked_for_again(wire: str) -> None:
    waits: list[float] = []
    reply, stats = complete(lambda body, n: Turn("whole", cut=2 if n == 1 else None), wire, waits=waits)
    assert reply.text == "whole" and stats.tries == 2 and len(waits) == 1
    # Anthropic says at the beginning what the input was: that was paid for.
    assert stats.lost.tokens_in == (TOKENS_IN if wire == "messages" else 0)


def test_a_server_that_says_when_to_come_back_is_obeyed() -> None:
    waits: list[float] = []
    turns = [Turn(status=429, headers={"retry-after": "7"}), Turn(status=500), Turn(status=529), Turn("at last")]
    reply, stats = complete(lambda body, number: turns[number - 1], waits=waits)
    assert reply.text == "at last" and stats.tries == 4
    assert waits[0] == 7 and 0.5 <= waits[1] <= 4 and len(waits) == 3


def test_it_gives_up_after_a_while() -> None:
    with pytest.raises(ModelUnavailable, match=r"3 tries.*HTTP 503"):
        complete(lambda body, number: Turn(status=503), tries=3)


def test_silence_is_a_failure_too() -> None:
    reply, stats = complete(lambda body, n: Turn("here", hang=n == 1), silence=0.3)
    assert reply.text == "here" and stats.failures == ["no answer in time"]


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (401, "bad key", ModelRefused),
        (404, "no such model", ModelRefused),
        (400, "This model's maximum context length is 8192 tokens", ContextTooLong),
        (400, "prompt is too long: 210000 tokens", ContextTooLong),
        (400, "scripted does not support tools", ToolsUnsupported),
    ],
)
def test_a_refusal_is_final_and_names_no_key(status: int, error: str, kind: type[ModelError]) -> None:
    requests: list[int] = []

    def script(body: dict[str, Any], number: int) -> Turn:
        requests.append(number)
        return Turn(status=status, error=error)

    with pytest.raises(kind) as caught:
        complete(script)
    assert requests == [1] and "4711" not in str(caught.value)


def test_a_field_the_endpoint_does_not_know_is_left_out() -> None:
    def script(body: dict[str, Any], number: int) -> Turn:
        return Turn(status=400, error="unknown field stream_options") if "stream_options" in body else Turn("fine")

    reply, stats = complete(script)
    assert reply.text == "fine" and stats.tries == 2


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("stream", [True, False])
def test_refusals_and_short_answers_are_told_apart(wire: str, stream: bool) -> None:
    assert complete(lambda body, n: Turn("I will not", refusal=True), wire, stream=stream)[0].stop == "refusal"
    assert complete(lambda body, n: Turn("I was ab", short=True), wire, stream=stream)[0].stop == "length"


@pytest.mark.parametrize("wire", WIRES)
def test_arguments_that_are_no_json_come_through_as_they_are(wire: str) -> None:
    reply, _ = complete(lambda body, n: Turn("", (("kubectl", '{"arguments": "get'),)), wire)
    assert reply.calls[0].arguments == '{"arguments": "get'
    again = WIRES[wire].body(
        ModelRequest("m", "s", (reply.as_message(), Message("tool", "bad", call_id=reply.calls[0].id)))
    )
    assert reply.calls[0].id in str(again)


@given(st.text(), st.integers(1, 40))
def test_events_do_not_depend_on_how_bytes_are_cut(text: str, size: int) -> None:
    import json

    stream = f"event: a\ndata: {json.dumps({'t': text}, ensure_ascii=False)}\n\ndata: [DONE]\n\n".encode(
        "utf-8", "surrogatepass"
    )

    async def chunks() -> Any:
        for start in range(0, len(stream), size):
            yield stream[start : start + size]

    async def collected() -> list[Any]:
        return [event async for event in parse_events(chunks())]

    assert asyncio.run(collected()) == [("a", {"t": text})]


def test_calls_without_text_are_written_in_every_tongue() -> None:
    turn = Message("assistant", "", (ToolCall("c1", "kubectl", ""),))
    for wire in WIRES.values():
        body = wire.body(ModelRequest("m", "s", (Message("user", "hi"), turn, Message("tool", "ok", call_id="c1"))))
        assert "c1" in str(body)
