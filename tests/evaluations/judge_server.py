"""A scripted OpenAI-compatible server that stands in for the judge, with several behaviours (moods).

By default it judges honestly: 1 if the explanation has the key's own words, 0.5 if it mentions a flag, else 0. Before
that, a script of moods is used up, one per request; `always` sets the mood of all others.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANG = 5.0


def fenced(body: dict[str, Any]) -> Any:
    """The data of a question, without its fence."""
    lines = body["messages"][1]["content"].split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("----- data "))
    end = next(i for i, line in enumerate(lines) if line.startswith("----- end of data "))
    return json.loads("\n".join(lines[start + 1 : end]))


def honest(item: dict[str, Any]) -> float:
    explanation = item["explanation"]
    if any(statement.rstrip(". ").lower() in explanation.lower() for statement in item["key"]):
        return 1.0
    return 0.5 if "flag" in explanation.lower() else 0.0


class ScriptedJudge:
    def __init__(self, script: list[str] | None = None, always: str = "honest", delay: float = 0.0) -> None:
        self.script = list(script or [])
        self.always = always
        self.delay = delay
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answered: Counter[str] = Counter()
        self.under_way = self.most_at_once = 0
        self.started = threading.Event()
        self.lock = threading.Lock()

    @property
    def requests(self) -> int:
        return len(self.bodies)

    def next_mood(self) -> str:
        with self.lock:
            return self.script.pop(0) if self.script else self.always

    def verdicts(self, body: dict[str, Any], mood: str) -> str:
        if body["messages"][-1]["content"] == "Reply with the word ready.":  # a leaderboard's connection test
            return "ready"
        data = fenced(body)
        if isinstance(data, dict):  # a question of matching
            first = data["groups"][0]["id"]
            choice = {"honest": None, "root": first}.get(mood, "no-such-group")
            return json.dumps({"matches": [{"id": each["id"], "group": choice} for each in data["names"]]})
        scores = {item["id"]: 1 if mood == "yes" else 0 if mood == "no" else honest(item) for item in data}
        if mood == "obeys" and "ignore the rubric" in json.dumps(data).lower():
            scores = dict.fromkeys(scores, 1)
        rows = [{"id": key, "quote": "", "why": "", "score": score} for key, score in scores.items()]
        if mood == "forgetful":
            rows.pop()
        if mood == "off-scale":
            rows[0]["score"] = 7
        text = json.dumps({"verdicts": rows})
        return {
            "fence": f"Sure!\n```json\n{text}\n```",
            "malformed": text[:-9] + "}}}",
            "prose": "They did well.",
            "thinks": f"<think>{{hm}} [1]</think>{text}",
        }.get(mood, text)


def _handler(judge: ScriptedJudge) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536

        def reply(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
            data = document.encode() if isinstance(document, str) else json.dumps(document).encode()
            self.send_response(status)
            for name, value in {"content-length": str(len(data)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with judge.lock:
                judge.bodies.append(body)
                judge.headers.append({key.lower(): value for key, value in self.headers.items()})
                judge.under_way += 1
                judge.most_at_once = max(judge.most_at_once, judge.under_way)
            judge.started.set()
            time.sleep(judge.delay)
            try:
                self.act(judge.next_mood(), body)
            finally:
                with judge.lock:
                    judge.under_way -= 1

        def act(self, mood: str, body: dict[str, Any]) -> None:
            errors: dict[str, tuple[int, Any, dict[str, str]]] = {
                "429": (429, {"error": {"message": "slow down"}}, {"retry-after": "0.2"}),
                "429 bare": (429, {"error": {"message": "slow down"}}, {}),
                "500": (500, "oops", {}),
                "503": (503, "<html>unavailable</html>", {}),
                "401": (401, {"error": {"message": "bad key"}}, {}),
                "418": (418, {"error": {"message": "a teapot"}}, {}),
                "page": (200, "<html>welcome</html>", {}),
                "error in 200": (200, {"error": {"message": "provider failed"}}, {}),
            }
            if mood in errors:
                self.reply(*errors[mood])
            elif mood == "hang":
                time.sleep(HANG)
                self.close_connection = True
            elif mood == "drop":
                self.close_connection = True
            elif mood == "no schema" and "response_format" in body:
                self.reply(400, {"error": {"message": "response_format is not supported by this model"}})
            elif mood == "modern" and (body.get("temperature") == 0 or "seed" in body or "max_tokens" in body):
                wrong = next(name for name in ("max_tokens", "temperature", "seed") if name in body)
                hint = "use 'max_completion_tokens' instead" if wrong == "max_tokens" else ""
                self.reply(400, {"error": {"message": f"Unsupported parameter: '{wrong}'. {hint}"}})
            else:
                content: Any = "" if mood == "empty" else judge.verdicts(body, mood)
                finish = "stop"
                if mood == "truncated" and body["max_tokens"] < 4000:
                    content, finish = content[: len(content) // 2], "length"
                with judge.lock:
                    judge.answered[body["messages"][-1]["content"]] += 1
                usage = {"prompt_tokens": 1000, "completion_tokens": 100}
                choice = {"message": {"role": "assistant", "content": content}, "finish_reason": finish}
                self.reply(200, {"choices": [choice], "usage": usage})

        def log_message(self, *_: object) -> None:
            return

    return Handler


@contextmanager
def serving(judge: ScriptedJudge) -> Iterator[str]:
    """Serve the judge during the block; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(judge))
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
