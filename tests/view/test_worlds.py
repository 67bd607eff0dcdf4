"""The system of a finished trial, built again at one of its steps, in a real browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from selenium.webdriver import Chrome

from srearena.closeable import Closeable
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.trials.trial import Trial, perform
from srearena.conductor.worlds.journal import FILE
from srearena.config import Config
from tests.view.conftest import serving
from tests.view.pages import Pages, trial_page
from tests.view.results import HOSTILE

PROBLEM = "wrong_service_selector_hotel_reservation"
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hostile"}, "data": {"a": HOSTILE}}
APPLY = f"kubectl -n hotel-reservation apply -f - <<'EOF'\n{json.dumps(MAP)}\nEOF"
ACTS = [
    'kubectl("-n hotel-reservation get services")',
    f"exec_shell({json.dumps(APPLY)})",
    'kubectl("-n hotel-reservation scale deployment geo --replicas 0")',
    "wait(120)",
    'submit("Yes")',
    'submit(["geo"])',
    "submit()",
]


class Scripted:
    """Does these acts, one after the other."""

    def __init__(self) -> None:
        self._acts = iter(ACTS)

    async def get_action(self, state: str) -> str:
        return next(self._acts)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with one trial in real time, as `srearena run` performs it."""
    run = tmp_path_factory.mktemp("results") / "real"
    spec = EpisodeSpec(5, timeline=Timeline(before=120, after=120, deployment=120), config=Config())
    document = perform(Trial(PROBLEM, "scripted", str(run), isolation="none", spec=spec), create_agent=Scripted)
    assert document["outcome"] == "fail", document["reason"]
    return run


@pytest.fixture(scope="module")
def link(run: Path, chrome: Chrome) -> Iterator[str]:
    with serving(run) as printed:
        yield printed


@pytest.fixture
def pages(chrome: Chrome, link: str) -> Pages:
    chrome.get_log("browser")
    return Pages(chrome, link)


def world_page(step: int, tab: str = "") -> str:
    return f"{trial_page('real', PROBLEM).replace('#/trial', '#/world')}/{step}{tab}"


def step_of(pages: Pages, words: str) -> int:
    """The number of the step whose title has these words."""
    return next(n for n, text in enumerate(pages.all("#transcript > li"), 1) if words in text)


def test_the_system_is_opened_at_a_step_with_everything_that_a_live_one_shows(pages: Pages, axe: str) -> None:
    pages.open(trial_page("real", PROBLEM), "#transcript .step")
    scaled = step_of(pages, "scale deployment")
    pages.open(f"{trial_page('real', PROBLEM)}?step={step_of(pages, 'wait(120)')}", "#open-world")
    pages.find("#open-world").click()
    pages.wait(lambda: pages.all("#building"))
    pages.wait(lambda: pages.all(".node"), 180)
    assert "all 4 answers are the recorded ones" in pages.text("#answers")
    assert "built again" in pages.text("h1") and pages.all("#close-world")
    assert pages.all(".node .word"), "the fault is marked: the trial has been graded"
    assert wrong(pages, axe) == []
    pages.wait(lambda: "geo" in "".join(pages.all(".node.level-2")))
    pages.press("2")
    pages.wait(lambda: pages.all("#pods tbody tr") and pages.all("#events tbody tr"))
    assert not any(name.startswith("geo-") for name in pages.all("#pods tbody th"))
    pages.press("3")
    pages.wait(lambda: pages.all("#log .log-line"))
    pages.type("#search", "geo")
    pages.wait(lambda: {text.lower() for text in pages.all("#log mark")} == {"geo"})
    pages.press("4")
    pages.wait(lambda: pages.all("#traces tbody button"))
    pages.find("#traces tbody button").click()
    pages.wait(lambda: pages.all(".waterfall li"))
    pages.press("5")
    pages.wait(lambda: "geo" in "".join(pages.all("#objects tbody")))
    changed = "".join(pages.all("#objects tbody"))
    assert "hostile" in changed and "services" in changed, (
        "the fault and the agent's changes, against the healthy system"
    )
    script = (
        "[...document.querySelectorAll('#objects button')].find((one) => one.textContent.includes('hostile')).click()"
    )
    pages.chrome.execute_script(script)
    pages.wait(
        lambda: pages.all("#object .yaml") and "<script>window.broken = 1</script>" in pages.text("#object .yaml")
    )
    pages.press("6")
    pages.wait(lambda: pages.all("#expression"))
    pages.type("#expression", "count(up)")
    pages.find("#expression").submit()
    pages.wait(lambda: pages.all(".uplot"))
    assert pages.chrome.execute_script("return window.broken") is None and pages.errors() == []

    pages.open(world_page(scaled - 1, "/cluster"), "#pods tbody tr, #building")
    pages.wait(lambda: any(name.startswith("geo-") for name in pages.all("#pods tbody th")), 180)


def wrong(pages: Pages, axe: str) -> list[str]:
    """What the accessibility checker finds, in both themes."""
    found: list[str] = []
    for theme in ("light", "dark"):
        pages.chrome.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
        pages.chrome.execute_script(axe)
        found += pages.chrome.execute_async_script(
            """const done = arguments[arguments.length - 1];
            axe.run().then((result) => done(result.violations.map((one) => one.id + ": " + one.nodes[0].html)),
                           (problem) => done([String(problem)]))"""
        )
    return found


def test_time_goes_on_only_where_the_operator_lets_it(pages: Pages) -> None:
    pages.open(world_page(0), ".node, #building")
    pages.wait(lambda: pages.all(".node"), 180)
    before = pages.text("#clock-time")
    assert "stands still" in pages.text(".clock") and "Pause" not in pages.text(".clock")
    pages.find(".clock button").click()
    pages.wait(lambda: pages.text("#clock-time") != before)
    pages.find("#close-world").click()
    pages.wait(lambda: pages.hash.startswith("#/trial/") and pages.all("#transcript"))
    pages.open("#/incidents", "main h1")
    assert "world" not in "".join(pages.all("#incidents"))


class Api(Closeable):
    """Requests to the view, as its page sends them."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        base = f"http://{parts.netloc}"
        token = parts.query.partition("=")[2]
        self.open_client = httpx.Client(base_url=base, timeout=60)
        self.client = httpx.Client(base_url=base, timeout=60, headers={"authorization": f"Bearer {token}"})

    def close(self) -> None:
        self.client.close()
        self.open_client.close()

    def open(self, trial: str, step: object) -> httpx.Response:
        return self.client.post("/api/world/open", json={"trial": trial, "step": step})

    def ended(self, world: str) -> dict[str, Any]:
        """The document of a world that is not being built any more."""
        while (document := self.client.get("/api/world", params={"world": world}).json())["state"] == "building":
            pass
        return dict(document)


@pytest.fixture
def api(link: str) -> Iterator[Api]:
    with Api(link) as client:
        yield client


def test_only_the_holder_of_the_token_opens_a_system_and_only_by_an_id(api: Api) -> None:
    trial = f"0/real/{PROBLEM}/0"
    request = {"trial": trial, "step": 0}
    assert api.open_client.post("/api/world/open", json=request).status_code == 401
    assert api.client.post("/api/world/open", data=request).status_code == 415
    assert api.client.get("/api/world/open", params=request).status_code == 404
    for name in ("", "0/real/../../etc/0", f"/{trial}", "0/real", "../real"):
        assert "there is no trial" in api.open(name, 0).json()["error"], name
    for step in (-1, 10_000, "x", None, 1.5):
        assert api.open(trial, step).status_code == 422, step


def hostile(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        journal = json.loads((folder / FILE).read_text())
        change(journal)
        (folder / FILE).write_text(json.dumps(journal))

    return write


JOURNALS = {
    "no journal": (lambda folder: (folder / FILE).unlink(), "because the trial has no journal"),
    "no JSON": (lambda folder: (folder / FILE).write_text("{"), "is not a journal"),
    "a link": (
        lambda folder: ((folder / FILE).unlink(), (folder / FILE).symlink_to("/etc/passwd")),
        "because the trial has no journal",
    ),
    "days": (hostile(lambda one: one["spec"]["timeline"].update(before=1e9)), "is of no real trial"),
    "an endless wait": (hostile(lambda one: one["requests"][0].update(until=1e12)), "is of no real trial"),
    "many": (hostile(lambda one: one.update(requests=one["requests"] * 2_000)), "is of no real trial"),
    "a real cluster": (hostile(lambda one: one["spec"]["config"].update(k8s_host="kind")), "was on a real cluster"),
    "other types": (hostile(lambda one: one["requests"][0].update(at="now")), "is not a journal"),
}


@pytest.mark.parametrize("name", JOURNALS)
def test_a_journal_that_is_none_is_refused_in_one_sentence(run: Path, name: str, tmp_path: Path) -> None:
    write, sentence = JOURNALS[name]
    shutil.copytree(run, tmp_path / "run")
    folder = tmp_path / "run" / "trials" / PROBLEM / "0"
    write(folder)
    with serving(tmp_path / "run") as link, Api(link) as api:
        answer = api.open(f"0/run/{PROBLEM}/0", 12)
    assert answer.status_code == 422 and sentence in answer.json()["error"]


def test_a_journal_of_an_unknown_problem_fails_on_the_page(run: Path, chrome: Chrome, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    folder = tmp_path / "run" / "trials" / PROBLEM / "0"
    hostile(lambda one: one.update(problem=HOSTILE))(folder)
    with serving(tmp_path / "run") as link:
        pages = Pages(chrome, link)
        pages.open(f"#/world/{quote(f'0/run/{PROBLEM}/0', safe='')}/0", "[role=alert]")
        assert "could not be built again" in pages.text("[role=alert]") and pages.all("#again")
        assert pages.chrome.execute_script("return window.broken") is None


def test_the_page_says_why_there_is_no_system(run: Path, chrome: Chrome, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "trials" / PROBLEM / "0" / FILE).unlink()
    with serving(tmp_path / "run") as link:
        pages = Pages(chrome, link)
        pages.open(trial_page("run", PROBLEM), "#no-world")
        assert pages.text("#no-world").count(".") == 1 and not pages.all("#open-world")


def test_opening_a_third_system_ends_the_one_that_was_asked_for_longest_ago(api: Api) -> None:
    trial = f"0/real/{PROBLEM}/0"
    first = api.ended(api.open(trial, 0).json()["world"])
    second = api.ended(api.open(trial, 1).json()["world"])
    assert first["state"] == second["state"] == "ready"
    assert api.open(trial, 0).json()["world"] == first["world"], "the same system is not built twice"
    third = api.open(trial, 2).json()["world"]
    assert api.ended(second["world"])["state"] == "ended"
    assert api.ended(third)["state"] == api.ended(first["world"])["state"] == "ready"
