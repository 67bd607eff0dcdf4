"""The server: who gets data, what an id can reach, and the command."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from srearena.cli import run
from srearena.view.catalog import Catalog
from srearena.view.export import ASSETS
from srearena.view.http_app import ViewApp
from tests.view.results import HOSTILE, make_runs

TOKEN = "the-token"
PORT = 8123


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("runs"))


def ask(runs: Path, *requests: httpx.Request) -> list[httpx.Response]:
    """Send requests, one after the other, as one client that keeps its cookies."""

    async def send() -> list[httpx.Response]:
        transport = httpx.ASGITransport(ViewApp(Catalog([runs]), TOKEN))
        async with httpx.AsyncClient(transport=transport) as client:
            return [await client.send(_with_cookies(client, request)) for request in requests]

    return asyncio.run(send())


def _with_cookies(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Request:
    client.cookies.set_cookie_header(request)
    return request


def get(path: str, host: str = "127.0.0.1", **headers: str) -> httpx.Request:
    return httpx.Request("GET", f"http://{host}:{PORT}{path}", headers=headers)


def test_data_needs_the_token_and_pages_do_not(runs: Path) -> None:
    page, refused, wrong = ask(runs, get("/"), get("/api/trials"), get("/api/trials", authorization="Bearer other"))
    assert (page.status_code, refused.status_code, wrong.status_code) == (200, 401, 401)
    assert "set-cookie" not in page.headers and "wrong_port" not in page.text
    header = {"authorization": f"Bearer {TOKEN}"}
    assert ask(runs, get("/api/trials", **header))[0].status_code == 200


def test_the_link_sets_a_cookie_that_only_this_application_gets(runs: Path) -> None:
    wrong, page, data = ask(runs, get("/?token=other"), get(f"/?token={TOKEN}"), get("/api/trials"))
    assert "set-cookie" not in wrong.headers
    assert page.headers["set-cookie"] == f"srearena_view_{PORT}={TOKEN}; Path=/; HttpOnly; SameSite=Strict"
    assert {row["problem"] for row in data.json()["trials"]} == {"wrong_port", "lost_packets"}


def test_another_host_name_is_refused(runs: Path) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example"):
        response = ask(runs, get("/api/trials", host, authorization=f"Bearer {TOKEN}"))[0]
        assert response.status_code == 421
    assert ask(runs, get("/", "localhost"))[0].status_code == 200


def test_every_response_has_the_policy(runs: Path) -> None:
    for path in ("/", "/view.js", "/view.css", "/api/trials", "/nothing"):
        response = ask(runs, get(path))[0]
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "identity", ["", "../../etc/passwd", "0/../alpha-1/wrong_port/0", "9/alpha-1/wrong_port/0", HOSTILE]
)
def test_an_id_is_no_path(runs: Path, identity: str) -> None:
    url = httpx.URL(f"http://127.0.0.1:{PORT}/api/trial", params={"id": identity})
    request = httpx.Request("GET", url, headers={"authorization": f"Bearer {TOKEN}"})
    assert ask(runs, request)[0].status_code == 404


def test_what_did_not_change_is_not_sent_again(runs: Path) -> None:
    header = {"authorization": f"Bearer {TOKEN}"}
    first = ask(runs, get("/api/trials", **header))[0]
    again = ask(runs, get("/api/trials", **header, **{"if-none-match": first.headers["etag"]}))[0]
    assert (again.status_code, again.content) == (304, b"")


def test_damaged_results_are_listed_and_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    for number, text in enumerate(("{", "[]", '{"stages": 3, "usage": [], "scores": "x", "trial": "y"}', "")):
        folder = tmp_path / "results" / "run" / "trials" / "odd" / str(number)
        folder.mkdir(parents=True)
        (folder / "result.json").write_text(text)
        (folder / "session.jsonl").write_text('{"what": 3}\n[1]\n{"what": "action", "text": {"a": 1}}\n{"wh')
        (folder / "agent.log").symlink_to(secret)
    catalog = Catalog([tmp_path / "results"])
    rows = catalog.rows()
    assert {row.outcome for row in rows} == {"unreadable"} and len(rows) == 4
    for row in rows:
        trial = catalog.find(row.id)
        assert trial is not None
        assert "secret" not in json.dumps(trial.document())


def run_view(*arguments: str) -> int:
    """Run the command in this process and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        run(["view", *arguments])
        sys.exit(0)
    return int(ended.value.code or 0)


def test_a_trial_is_exported_by_name(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SREARENA_RESULTS", str(runs))
    target = tmp_path / "trial.html"
    assert run_view("alpha-1", "--export", str(target)) == 0
    page = target.read_text()
    assert page.count("<script") == page.count("</script") == 2, "no text of the trial starts or ends a script"
    assert "http-equiv" in page and "alpha" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing-here",), "there is nothing to view in 'nothing-here'"),
        (("beta-1", "--export", "x.html"), "--export writes one trial, and 2 fit"),
        (("alpha-1", "--export", "/dev/null/x.html"), "cannot write /dev/null/x.html"),
    ],
)
def test_mistakes_are_one_line(
    runs: Path,
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SREARENA_RESULTS", str(runs))
    assert run_view(*arguments) == 1
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(f"Error: {message}") and printed.err.count("\n") == 1


def test_sigterm_ends_it_quietly(runs: Path) -> None:
    command = [sys.executable, "-m", "srearena", "view", str(runs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert "3 trials: http://127.0.0.1:" in process.stdout.readline()
        process.terminate()
        assert process.wait(60) in (0, -15) and process.stderr.read() == ""


def test_sigterm_ends_the_episodes_in_play(tmp_path: Path) -> None:
    results = tmp_path / "results"
    (results / ".live").mkdir(parents=True)
    command = [sys.executable, "-m", "srearena", "view", "--json"]
    environment = {**os.environ, "SREARENA_RESULTS": str(results)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())
        header = {"authorization": f"Bearer {address['token']}"}
        body = {"problem": "k8s_target_port-misconfig"}
        started = httpx.post(f"{address['url']}/api/play/start", json=body, headers=header, timeout=60)
        assert started.status_code == 200, started.text
        tasks = Path(f"/proc/{process.pid}/task")
        (episode,) = [child for task in tasks.glob("*/children") for child in task.read_text().split()]
        process.terminate()
        process.wait(120)
        assert not Path(f"/proc/{episode}").exists()


def test_the_built_files_are_there_and_load_nothing_from_elsewhere() -> None:
    for path in ASSETS.iterdir():
        text = path.read_text(encoding="utf-8")
        assert text
        if path.suffix in (".html", ".css"):
            assert "//" not in text.replace("<!DOCTYPE html>", "")
