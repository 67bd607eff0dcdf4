"""Episodes that a person plays in the page: each is a `srearena serve` of its own, driven through its HTTP API.

A person works like an agent: the same actions with the same policy, the same identity in the cluster, the same grade. A
line that begins with `kubectl` becomes the `kubectl` action; there is no shell.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import SystemRandom, token_hex
from typing import Any

import httpx

from srearena.conductor.episode.disclosure import REVEAL_TO
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.errors import SreArenaError
from srearena.interpreters import python_module

STARTING, PLAYING, GRADING, ENDED, FAILED = "starting", "playing", "grading", "ended", "failed"
_AT_ONCE = 2
_ACTION_TIMEOUT = 660.0
_STOP_TIMEOUT = 120.0
_LONGEST_ACTION = 20_000
_PLAYER = "human"


class PlayError(SreArenaError):
    """An episode cannot be started or continued; the text says why."""


def action_of(line: str) -> str:
    """The action for a line of the terminal: `kubectl get pods` is a call of the action `kubectl`."""
    words = line.strip()
    if words == "kubectl" or words.startswith(("kubectl ", "k ")):
        words = f"kubectl({json.dumps(words.partition(' ')[2].strip())})"
    return f"```\n{words}\n```"


class Play:
    """One episode and its process."""

    def __init__(self, problem: str, results: Path, *, hidden: bool) -> None:
        self.id = token_hex(8)
        self.state = STARTING
        self.hidden = hidden
        """Whether the player has not chosen the problem, so that its name is disclosed at the end only."""
        self._problem = problem
        self._address: dict[str, Any] = {}
        self._result: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self._errors: deque[str] = deque(maxlen=20)
        command = python_module("srearena", "serve", problem, "--json", "--mcp", "none", "--agent", _PLAYER)
        self._process = subprocess.Popen(
            [*command, "--max-seconds", "86400"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "SREARENA_RESULTS": str(results), REVEAL_TO: ""},
        )
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_errors, self._read)]
        for reader in self._readers:
            reader.start()

    @property
    def kubeconfig(self) -> str:
        return str(self._address.get("kubeconfig", ""))

    @property
    def is_over(self) -> bool:
        return self.state in (ENDED, FAILED)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)

    def _read(self) -> None:
        """Follow what `serve` prints: the addresses, and at the end the result."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                document = json.loads(line)
                if isinstance(document, dict) and "result" in document:
                    self._result = document["result"]
                elif isinstance(document, dict) and "url" in document:
                    self._address = document
                    self.state = PLAYING
        self._process.wait()
        self.state = ENDED if self._result is not None else FAILED

    def document(self) -> dict[str, Any]:
        """What the page shows."""
        document: dict[str, Any] = {"id": self.id, "state": self.state}
        if not self.hidden or self.is_over:
            document["problem"] = self._problem
        if self.state == PLAYING:
            with contextlib.suppress(PlayError):
                status = self._request("GET", "/status", timeout=10.0)
                document["status"] = status
                if status.get("finished"):
                    self.state = document["state"] = GRADING
        if self.state == FAILED:
            document["error"] = self._failure()
        if self._result is not None:
            kept = ("outcome", "reason", "stages", "session")
            document["result"] = {key: self._result[key] for key in kept if key in self._result}
        return document

    def act(self, line: str) -> dict[str, Any]:
        """Perform one action; one after the other, as for an agent."""
        if len(line) > _LONGEST_ACTION:
            raise PlayError(f"a line has at most {_LONGEST_ACTION} characters")
        with self._lock:
            return self._request("POST", "/act", {"action": action_of(line)})

    def submit(self, solution: Any) -> dict[str, Any]:
        with self._lock:
            return self._request("POST", "/submit", {"solution": solution})

    def end(self) -> None:
        """End the player's part: what was done is graded."""
        if self._process.poll() is None:
            self._process.terminate()

    def close(self) -> None:
        """End the process, and wait for its result."""
        self.end()
        try:
            self._process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, timeout: float = _ACTION_TIMEOUT
    ) -> dict[str, Any]:
        if self.state != PLAYING:
            raise PlayError("the episode is not running")
        headers = {"authorization": f"Bearer {self._address['token']}"}
        try:
            response = httpx.request(
                method, f"{self._address['url']}{path}", json=body, headers=headers, timeout=timeout, trust_env=False
            )
            answer = response.json()
        except (httpx.HTTPError, ValueError) as problem:
            raise PlayError(f"the episode does not answer: {problem}") from problem
        if response.status_code != 200:
            raise PlayError(str(answer.get("error", "refused")))
        return dict(answer)

    def _failure(self) -> str:
        """The last line that `serve` wrote on its error output."""
        lines = [line.strip() for line in self._errors if line.strip()]
        return lines[-1] if lines else f"the episode ended with status {self._process.returncode}"


class Plays:
    """Episodes in play, by id. Safe to use from several threads."""

    def __init__(self, results: Path, incidents: Sequence[str] = ()) -> None:
        """`incidents`: the ids of incidents in files, which can be played beside the registered problems."""
        self._incidents = list(incidents)
        self._results = results
        self._plays: dict[str, Play] = {}
        self._lock = threading.Lock()
        self.routes: dict[tuple[str, str], Callable[[dict[str, str]], Any]] = {
            ("GET", "/api/problems"): lambda query: {"problems": problems(self._incidents)},
            ("GET", "/api/plays"): lambda query: {"plays": [play.document() for play in self._plays.values()]},
            ("POST", "/api/play/start"): self._start,
            ("POST", "/api/play/act"): lambda query: self._find(query).act(query.get("line", "")),
            ("POST", "/api/play/submit"): self._submit,
            ("POST", "/api/play/end"): self._end,
        }

    def document(self, identity: str) -> dict[str, Any]:
        return self._find({"play": identity}).document()

    def of_kubeconfig(self, kubeconfig: str) -> str:
        """The id of the play with that kubeconfig; "" where there is none."""
        return next(
            (play.id for play in self._plays.values() if play.kubeconfig == kubeconfig and not play.is_over), ""
        )

    def kubeconfig_of(self, identity: str) -> str:
        return self._find({"play": identity}).kubeconfig

    def close(self) -> None:
        for play in self._plays.values():
            play.end()
        for play in self._plays.values():
            play.close()

    def _find(self, query: dict[str, str]) -> Play:
        play = self._plays.get(query.get("play", ""))
        if play is None:
            raise PlayError("there is no such episode")
        return play

    def _start(self, query: dict[str, str]) -> dict[str, Any]:
        name = query.get("problem", "")
        names = ProblemRegistry().get_problem_ids()
        if name and name not in [*self._incidents, *names]:
            raise PlayError(f"there is no problem {name!r}")
        with self._lock:
            if sum(not play.is_over for play in self._plays.values()) >= _AT_ONCE:
                raise PlayError(f"{_AT_ONCE} episodes are in play: end one of them first")
            play = Play(name or SystemRandom().choice(names), self._results, hidden=not name)
            self._plays[play.id] = play
        return {"play": play.id}

    def _submit(self, query: dict[str, str]) -> dict[str, Any]:
        try:
            solution = json.loads(query.get("solution", "null"))
        except ValueError as problem:
            raise PlayError(f"the answer is not JSON: {problem}") from problem
        return self._find(query).submit(solution)

    def _end(self, query: dict[str, str]) -> dict[str, Any]:
        self._find(query).end()
        return {}


def problems(incidents: Sequence[str] = ()) -> list[dict[str, str]]:
    """The problems to choose from, as `srearena problems` lists them: without the answers."""
    registry = ProblemRegistry()
    summaries = [registry.get_problem(name).summary() for name in (*incidents, *registry.get_problem_ids())]
    return [
        {"id": one.id, "application": one.application, "level": one.level, "difficulty": one.difficulty}
        for one in summaries
    ]
