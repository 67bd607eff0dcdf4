"""What a run or an episode needs is checked before anything is staged, and named in one line."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from srearena.cli import run
from srearena.conductor.results.store import write_trial

PROBLEM = "noop_social_network"
HERE = "--in-process-agent"
"""The check is the same in a process of its own, which takes a second to start."""


@contextmanager
def endpoint(status: int) -> Iterator[str]:
    """An endpoint that answers every request for its models with a status."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = b'{"error": {"message": "Incorrect API key provided"}}'
            self.send_response(status)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "results"
    monkeypatch.setenv("SREARENA_RESULTS", str(folder))
    for name in ("OPENAI_API_KEY", "SREARENA_MODEL", "SREARENA_MODEL_KEY", "SREARENA_MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line with which a command refuses to start."""
    with pytest.raises(SystemExit) as ended:
        run(list(words))
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--agent", "llm", HERE), "the agent 'llm' cannot start: which model? Give --model"),
        (("--agent", "llm", "--model", "gpt-4.1", HERE), "openai needs a key: set OPENAI_API_KEY"),
        (("--agent", "scripted", "--script", "missing.txt"), "the script cannot be read: "),
    ],
)
def test_a_run_without_what_its_agent_needs_stages_nothing(
    words: tuple[str, ...], reason: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reason in refused(capsys, "run", PROBLEM, *words)
    assert not results.exists()


def test_the_endpoint_of_a_model_is_asked_before_a_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", PROBLEM, "--agent", "llm", "--model", "m", "--agent-option"]
    with endpoint(401) as url:
        line = refused(capsys, *words, f"base_url={url}")
        assert f"{url} refuses the key: HTTP 401 Incorrect API key provided" in line
    assert "cannot be reached" in refused(capsys, *words, f"base_url=http://127.0.0.1:{closed_port()}/v1", HERE)
    with endpoint(404) as url:  # no list of models is no reason to refuse: the next check does
        results.write_text("")
        assert "cannot write results" in refused(capsys, *words, f"base_url={url}")


def test_a_real_cluster_is_reached_before_a_run(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = Path("kubeconfig")
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: dev\n"
        "contexts: [{name: dev, context: {cluster: c, user: u}}]\n"
        f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{closed_port()}'}}}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
    )
    words = ("run", PROBLEM, "--backend", "kubernetes", "--kubeconfig", str(kubeconfig))
    with pytest.raises(SystemExit) as ended:
        run(list(words))
    assert ended.value.code == 1
    assert "the cluster of context 'dev'" in capsys.readouterr().err
    assert not results.exists()


@pytest.mark.parametrize("words", [("serve", PROBLEM), ("view",)])
def test_a_port_that_is_taken_is_named(
    words: tuple[str, ...], results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = refused(capsys, *words, "--port", str(port))
        assert f"port {port} cannot be used: Address already in use; choose another --port" in line


def test_serve_needs_a_folder(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results.write_text("a file, not a folder")
    assert f"cannot write results to {results}: Not a directory" in refused(capsys, "serve", PROBLEM)
    assert "cannot write results" in refused(capsys, "run", PROBLEM)


def test_a_run_whose_trials_are_all_graded_needs_nothing(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trial(results / "done", {"schema": "srearena.trial/1", "problem": PROBLEM, "trial": 0, "outcome": "fail"})
    run(["run", PROBLEM, "--agent", "llm", "--run", "done"])
    assert "(kept)" in capsys.readouterr().out
