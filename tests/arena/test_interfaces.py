"""Other interfaces: HTTP for agents in any language, the console for people, suites of trials."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from srearena.commands.problems import command as problems_command
from srearena.commands.results import command as results_command
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.conductor.results.comparison import compare
from srearena.conductor.results.store import read_trials, totals, write_trial
from srearena.conductor.serving.console import Console
from srearena.conductor.serving.http_api import EpisodeApp, openapi
from srearena.conductor.serving.json_app import serve
from srearena.conductor.session import read_session
from srearena.conductor.trials.suite import Progress, Suite
from srearena.conductor.trials.tables import LiveTable
from srearena.conductor.trials.trial import Trial
from srearena.service.errors import ApiRefused
from srearena.service.kubernetes import Kubernetes
from tests.arena.episodes import TIMELINE, ZERO, prepared_episode, shop_problem


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SREARENA_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


def test_an_agent_works_over_http_and_learns_no_verdict() -> None:
    with prepared_episode(shop_problem(ScalePodZero, "store"), stages=("detection", "localization")) as episode:
        port: list[int] = []
        up = threading.Event()

        def ready(at: int) -> None:
            port.append(at)
            up.set()

        async def main() -> None:
            stop = asyncio.Event()
            app = EpisodeApp(episode, "secret", {"description": episode.description}, stop.set)
            await serve(app, 0, ready, stop)

        server = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
        server.start()
        assert up.wait(10)
        with httpx.Client(base_url=f"http://127.0.0.1:{port[0]}", trust_env=False) as client:
            assert client.get("/openapi.json").json()["openapi"].startswith("3.")
            assert client.get("/task").status_code == 401
            assert client.get("/task", headers={"authorization": "Bearer wrong"}).status_code == 401
            client.headers["authorization"] = "Bearer secret"
            task = client.get("/task").json()
            assert "corner-shop" in task["description"] and "Yes or No" in task["question"]
            assert client.get("/status").json()["finished"] is False
            for path in ("/grade", "/verdict", "/problem", "/../etc/passwd", "/task/x"):
                assert client.get(path).status_code == 404
            assert client.post("/submit", content=b"{").status_code == 400
            assert client.post("/submit", json={"answer": 1}).status_code == 400
            assert client.post("/submit", json={"solution": 5}).status_code == 422
            assert client.post("/submit", content=b"[" * 500_000).status_code == 400
            assert client.post("/submit", content=b"x" * 2_000_000).status_code == 413
            assert "READY" in client.post("/act", json={"action": "kubectl get pods"}).json()["state"]
            assert client.post("/submit", json={"stage": "localization", "solution": []}).status_code == 422
            assert client.post("/submit", json={"stage": "victory", "solution": []}).status_code == 422
            assert client.post("/submit", json={"stage": [], "solution": []}).status_code == 400
            named = {"stage": client.get("/status").json()["name"], "solution": "Yes"}
            first = client.post("/submit", json=named).json()
            assert first["finished"] is False and "passed" not in json.dumps(first)
            assert client.post("/submit", json=named).json() == first, "a repeated answer changes nothing"
            assert client.post("/submit", json={"stage": 1, "solution": "Yes"}).json() == first
            assert client.post("/submit", json={"stage": "detection", "solution": "No"}).status_code == 422
            assert client.get("/status").json()["stage"] == 2
            last = client.post("/submit", json={"solution": ["store"]}).json()
            assert last["finished"] is True and set(last) == {"received", "question", "finished"}
        server.join(10)
        assert episode.grade().outcome == "pass"


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_read_only_binds_every_interface() -> None:
    problem = shop_problem(ScalePodZero, "store")
    with prepared_episode(problem, stages=("detection",), read_only=True) as episode:
        assert "READY" in episode.act("kubectl get deployments")
        for action in (
            "kubectl delete service api",
            "kubectl scale deployment store --replicas=1",
            "kubectl exec deploy/web -- ls",
            "kubectl get secrets",
            "kubectl -n kube-system delete pods --all",
        ):
            assert "forbidden" in episode.act(action).lower(), action
        assert episode.kubeconfig is not None
        with Kubernetes(episode.kubeconfig) as api, pytest.raises(ApiRefused):
            api.delete("services", "api", "corner-shop")


def test_a_submission_in_python_names_its_stage() -> None:
    with prepared_episode(shop_problem(ScalePodZero, "store"), stages=("noop", "detection", "localization")) as episode:
        assert "two stages are called" in episode.act('submit("No", stage="detection")')
        second = episode.act('submit("No", stage=1)')
        assert second.startswith("Stage 2 of 3")
        assert episode.act('submit("No", stage=1)') == second
        assert episode.submit("Yes", 2).startswith("Stage 3 of 3")
        assert "cannot be read" in episode.act(r'submit(["\ud800"])')  # reasons with it could not be written
        over = episode.submit(["store"], "localization")
        assert episode.submit(["store"], "localization") == over == "The episode is over."


def test_the_openapi_document_names_every_route() -> None:
    assert set(openapi()["paths"]) == {"/status", "/task", "/submit", "/act"}


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_a_person_reaches_a_grade_in_the_console() -> None:
    output: list[str] = []
    lines = iter(
        [
            "help",
            "list corner_shop_zero",
            "status",
            "start nonsense",
            f"start {ZERO}",
            'submit("Yes")',
            'submit(["store"])',
            "kubectl scale deployment store --replicas=1",
            "submit()",
        ]
    )

    def read(prompt: str) -> str:
        assert prompt == "(srearena) $ "
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    Console(output.append).loop(read)
    text = "\n".join(output)
    assert "no problem is running" in text
    assert "there is no problem called 'nonsense'" in text
    assert "deployment.apps/store scaled" in text
    assert "Outcome: pass" in text
    result = next(Path(line.removeprefix("Result: ")) for line in output if line.startswith("Result: "))
    assert f"View it with `srearena view {result.parents[2].name}`." in output
    (command,) = (entry for entry in read_session(result / "session.jsonl") if entry["what"] == "command")
    assert command["output"] == "deployment.apps/store scaled\n"


def test_the_console_completes_ids_and_verbs() -> None:
    console = Console(lambda text: None)
    assert ZERO in console.completions("start corner_shop_z")
    assert console.completions("kubectl ro") == ["rollout"]
    assert "submit(" in console.completions("sub")


def trials(run: Path, count: int) -> list[Trial]:
    specs = [EpisodeSpec(number, limits=Limits(steps=5), timeline=TIMELINE) for number in range(count)]
    return [Trial("wrong_id", "nothing", str(run), spec.seed, spec=spec) for spec in specs]


def test_a_suite_resumes_and_runs_errors_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    first = Suite(trials(run, 2), run, parallel=2).perform()
    assert [result["outcome"] for result in first] == ["environment error"] * 2
    assert "there is no problem called" in first[0]["reason"]
    graded = {**first[0], "outcome": "fail", "usage": {"cost": 1.5}}
    kept = write_trial(run, graded)
    stamps = [path.stat().st_mtime_ns for path in sorted(run.glob("trials/*/*/result.json"))]
    seen: list[Progress] = []
    again = Suite(trials(run, 3), run, parallel=2)
    assert len(again.perform(seen.append)) == 3
    assert [(entry.from_earlier_run, entry.state) for entry in again.progress] == [
        (True, "kept"),
        (False, "environment error"),
        (False, "environment error"),
    ]
    after = [path.stat().st_mtime_ns for path in sorted(run.glob("trials/*/*/result.json"))]
    assert kept.stat().st_mtime_ns == stamps[0] == after[0] and after[1] != stamps[1]
    assert (run / "summary.csv").read_text().count("environment error") == 2
    assert totals(list(read_trials(run)))["outcomes"] == {"fail": 1, "environment error": 2}
    output = StringIO()
    for entry in again.progress:
        LiveTable(output, live=False).show(again.progress, entry)
    rows = output.getvalue().splitlines()
    assert "(kept)" in rows[0] and all("there is no problem called" in row for row in rows)


def test_two_runs_are_compared_problem_by_problem() -> None:
    def document(problem: str, outcome: str) -> dict[str, Any]:
        return {"problem": problem, "outcome": outcome, "stages": []}

    changes = compare([document("a", "pass"), document("b", "fail")], [document("a", "fail"), document("c", "pass")])
    assert [(change.problem, change.kind) for change in changes] == [
        ("a", "worse"),
        ("b", "only in one"),
        ("c", "only in one"),
    ]


def test_lists_do_not_give_answers_away() -> None:
    plain = CliRunner().invoke(problems_command, ["scale_pod_zero_social_net", "--json"]).output
    assert "user-service" not in plain and "remedy" not in plain
    spoiled = CliRunner().invoke(problems_command, ["scale_pod_zero_social_net", "--json", "--spoilers"]).output
    assert json.loads(spoiled)[0]["faulty"] == ["user-service"]


def test_without_results_the_next_step_is_said() -> None:
    assert "srearena run" in CliRunner().invoke(results_command, []).output
