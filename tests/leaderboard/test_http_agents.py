"""Agents over HTTP, on recordings and live problems: one request per step, and nothing that names the incident."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from itbench_leaderboard.cli import main
from tests.leaderboard.incidents import make_snapshots

PROBLEM = "scale_pod_zero_social_net"
USAGE = {"tokens_in": 7, "tokens_out": 1, "cost": 0.25}
Request = dict[str, Any]
Mind = Callable[[list[Request]], tuple[int, Any]]
"""From all that one session was asked so far to a status and a reply."""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SREARENA_CACHE", str(tmp_path / "cache"))


@contextmanager
def remote(mind: Mind) -> Iterator[tuple[str, list[Request]]]:
    """An agent of a user's, elsewhere: its address, and the requests it got."""
    requests: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        def do_OPTIONS(self) -> None:
            self._answer(204, b"")

        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            status, reply = mind([one for one in requests if one["session"] == requests[-1]["session"]])
            self._answer(status, json.dumps(reply).encode())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/act", requests
        finally:
            server.shutdown()
            thread.join()


def campaign(place: Path, url: str, head: str, agent: str = "") -> dict[str, Any]:
    """The agent's row after a campaign on what `head` names."""
    path = place / "model_leaderboard.toml"
    path.write_text(f'{head}\nretries = 0\n[[agents]]\nname = "remote"\nkind = "http"\nurl = "{url}"\n{agent}\n')
    assert main(["--config", str(path)]) == 0
    board = json.loads((place / "leaderboard_results" / "results" / "leaderboard.json").read_text())
    row: dict[str, Any] = board["rankings"][0]
    return row


def live(*stages: str) -> str:
    return f'problems = ["{PROBLEM}"]\nstages = {json.dumps(stages)}'


def result(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        (place / "leaderboard_results" / "remote" / PROBLEM / "1" / "arena_result.json").read_text()
    )
    return found


def act(action: str) -> tuple[int, Request]:
    return 200, {"action": action, "usage": USAGE}


def test_a_recording(tmp_path: Path) -> None:
    make_snapshots(tmp_path / "snapshots", 1)
    answer = {"entities": [], "propagations": [], "alerts_explained": []}
    with remote(lambda requests: act("alert_summary(limit=1)" if len(requests) == 1 else f"submit({answer})")) as (
        url,
        seen,
    ):
        row = campaign(tmp_path, url, 'scenarios_dir = "snapshots"')
    first, second = seen
    assert "actions" in first and "actions" not in second
    assert "RequestErrorRate" in second["state"]
    assert "Scenario" not in first["session"]
    assert row["cost_usd"] == 0.25


def engineer(requests: list[Request]) -> tuple[int, Request]:
    """Finds the Deployment without pods, names it, scales it up, and looks before saying that it is done."""
    listing = next((one["state"] for one in requests if re.search(r"^NAMESPACE +NAME +READY", one["state"], re.M)), "")
    down = re.search(r"^(\S+) +(\S+) +0/0 ", listing, re.MULTILINE)
    if down is None:
        return act("```\nkubectl get deployments -A\n```")
    namespace, name = down.groups()
    question = next(one["state"] for one in reversed(requests) if one["state"].startswith("Stage"))
    if "Is anything wrong" in question:
        return act('submit("Yes")')
    if "Which components" in question:
        return act(f"submit({[name]!r})")
    done = requests[-1]["state"]
    if f"{name} scaled" in done:
        return act(f"kubectl rollout status deployment/{name} -n {namespace} --timeout 60s")
    if "successfully rolled out" in done:
        return act("submit()")
    return act(f"kubectl scale deployment {name} -n {namespace} --replicas=1")


@pytest.mark.kubectl
def test_a_live_problem_to_its_mitigation(tmp_path: Path) -> None:
    with remote(engineer) as (url, seen):
        row = campaign(tmp_path, url, live("detection", "localization", "mitigation"), "max_steps = 12")
    document = result(tmp_path)
    assert [(stage["stage"], stage["verdict"]["passed"]) for stage in document["stages"]] == [
        ("detection", True),
        ("localization", True),
        ("mitigation", True),
    ], [one["state"] for one in seen]
    assert row["metrics"]["resolved"]["mean"] == 1.0
    # Asked in one conversation, introduced once, with the actions that it may use.
    assert [one["step"] for one in seen] == list(range(1, len(seen) + 1))
    assert len({one["session"] for one in seen}) == 1
    assert {"kubectl", "submit"} <= set(seen[0]["actions"])
    assert seen[0]["description"] and seen[0]["instructions"]
    assert all("description" not in one for one in seen[1:])
    # What it says of its usage is counted; nothing that it was sent names the incident.
    assert row["cost_usd"] == 0.25
    assert document["usage"]["tokens_in"] == 7
    sent = json.dumps(seen)
    assert PROBLEM not in sent and "scale_pod" not in sent
    traces = tmp_path / "leaderboard_results" / "remote" / PROBLEM / "1" / "traces"
    assert "kubectl scale deployment" in (traces / "trajectory.json").read_text()
    assert (traces / "session.jsonl").is_file()


@pytest.mark.parametrize(
    ("status", "reply", "reason"),
    [(500, {"error": "no credit left"}, "500"), (200, {"act": "submit"}, "did not answer with")],
    ids=["an error", "no action"],
)
def test_an_agent_that_fails_on_a_live_problem_is_told_from_a_broken_environment(
    tmp_path: Path, status: int, reply: Request, reason: str
) -> None:
    with remote(lambda requests: (status, reply)) as (url, seen):
        row = campaign(tmp_path, url, live("detection"))
    assert (row["outcomes"], row["score"]) == ({"agent_failed": 1}, 0.0)
    assert len(seen) == 1
    assert reason in result(tmp_path)["reason"]


def test_an_agent_that_hangs_is_given_up(tmp_path: Path) -> None:
    over = Event()

    def hang(requests: list[Request]) -> tuple[int, Any]:
        over.wait(120)
        return act('submit("Yes")')

    with remote(hang) as (url, _):
        try:
            row = campaign(tmp_path, url, live("detection"), "timeout = 2")
        finally:
            over.set()
    assert (row["outcomes"], row["score"]) == ({"timeout": 1}, 0.0)
