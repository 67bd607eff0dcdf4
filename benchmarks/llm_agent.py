"""What the harness around a model costs per step: processor time besides the model and the tools.

    python benchmarks/llm_agent.py                 100 steps, answers of 4,000 characters, each wire
    python benchmarks/llm_agent.py --steps 300 --characters 12000 --wire chat

The model is a process of its own that answers at once, streamed, over HTTP; the cluster is another; tools give a text
at once. What is left is measured: the conversation, its requests and streams, parsing, limits, the record on disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from clients.llm import LlmAgent, Settings
from srearena.conductor import Conductor, EpisodeSpec
from srearena.conductor.actions.toolbox import Toolbox
from srearena.conductor.episode.limits import Limits

PROBLEM = "scale_pod_zero_social_net"
AIM = 5.0
CALL = {"name": "kubectl", "arguments": json.dumps({"arguments": "get pods --all-namespaces"})}
USED = {"prompt_tokens": 1000, "completion_tokens": 50, "input_tokens": 1000, "output_tokens": 50}
WORDS = "I look at the pods, since one of them may not be ready."

Event = tuple[str, dict[str, Any]]


def chat() -> list[Event]:
    call = {"index": 0, "id": "call_0", "function": CALL}
    deltas: list[dict[str, Any]] = [{"content": f"{word} "} for word in WORDS.split()] + [{"tool_calls": [call]}]
    events: list[Event] = [("", {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas]
    events.append(("", {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}))
    return [*events, ("", {"choices": [], "usage": USED})]


def responses() -> list[Event]:
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": WORDS}]}
    output = [message, {"type": "function_call", "call_id": "call_0", **CALL}]
    events: list[Event] = [("response.output_text.delta", {"delta": f"{word} "}) for word in WORDS.split()]
    whole = {"id": "r", "status": "completed", "output": output, "usage": USED}
    return [*events, ("response.completed", {"response": whole})]


def messages() -> list[Event]:
    block = {"type": "tool_use", "id": "toolu_0", "name": CALL["name"], "input": {}}
    partial = {"type": "input_json_delta", "partial_json": CALL["arguments"]}
    return [
        ("message_start", {"message": {"content": [], "usage": USED}}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        *(
            ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": f"{word} "}})
            for word in WORDS.split()
        ),
        ("content_block_stop", {"index": 0}),
        ("content_block_start", {"index": 1, "content_block": block}),
        ("content_block_delta", {"index": 1, "delta": partial}),
        ("content_block_stop", {"index": 1}),
        ("message_delta", {"delta": {"stop_reason": "tool_use"}, "usage": USED}),
        ("message_stop", {}),
    ]


WIRES = {"chat": chat, "responses": responses, "messages": messages}


def serve(wire: str) -> None:
    """The model: the same answer to everything, at once."""
    events = [
        (f"event: {name}\n" if name else "") + f"data: {json.dumps({'type': name, **data})}\n\n"
        for name, data in WIRES[wire]()
    ]
    body = "".join([*events, "data: [DONE]\n\n" if wire == "chat" else ""]).encode()
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.split(b":")[1]))
                writer.write(answer)
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(run())


class Watched(LlmAgent):
    """The agent, with a look at the clock each time it is its turn."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.marks: list[float] = []

    async def get_action(self, state: str) -> str:
        self.marks.append(time.process_time())
        return await super().get_action(state)


def measure(wire: str, steps: int, characters: int) -> list[float]:
    """Milliseconds of this process for each step but the last."""
    text = ("web-5d8f7c9b4-x2x9k   1/1   Running   0   4m12s\n" * (characters // 47 + 1))[:characters]
    Toolbox.perform = lambda self, call: text  # type: ignore[method-assign]
    command = [sys.executable, __file__, "--serve", wire]
    with tempfile.TemporaryDirectory() as place, subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as model:
        assert model.stdout is not None
        url = f"http://127.0.0.1:{int(model.stdout.readline())}"
        options = {"model": "gpt-4.1", "wire": wire, "base_url": url if wire == "messages" else f"{url}/v1"}
        agent = Watched(Settings.from_options(options, {}))
        spec = EpisodeSpec(stages=("detection",), limits=Limits(steps=steps))
        conductor = Conductor(spec, results=Path(place) / "run")
        conductor.register_agent(agent, "llm")
        conductor.init_problem(PROBLEM)
        result = asyncio.run(conductor.start_problem())
        model.terminate()
    if result["usage"]["steps"] != steps:
        raise SystemExit(f"the episode ended early: {result['outcome']}, {result['reason']}")
    return [1000 * (after - before) for before, after in zip(agent.marks, agent.marks[1:], strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--characters", type=int, default=4000, help="of each tool's answer")
    parser.add_argument("--wire", choices=WIRES, action="append", help="each, by default")
    parser.add_argument("--serve", choices=WIRES, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    for wire in arguments.wire or WIRES:
        spent = measure(wire, arguments.steps, arguments.characters)
        figures = {
            "wire": wire,
            "steps": arguments.steps,
            "mean": round(statistics.fmean(spent), 2),
            "first": round(spent[0], 2),
            "median": round(statistics.median(spent), 2),
            "most": round(max(spent[1:]), 2),
        }
        if arguments.json:
            print(json.dumps(figures))
            continue
        kept = "kept" if figures["mean"] < AIM else "MISSED"
        print(
            f"{wire:<10} {figures['mean']:6.2f} ms of processor per step (the first, with all that is loaded for it, "
            f"{figures['first']:.0f}; median {figures['median']:.2f}; most of the others {figures['most']:.2f})   "
            f"aim of {AIM:g} ms {kept}",
            flush=True,
        )
    if not arguments.json:
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
