"""The pages over runs, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from srearena.conductor.session import Session
from srearena.view.catalog import Catalog
from srearena.view.export import exported
from tests.view.pages import Pages, trial_page
from tests.view.results import HOSTILE, result, session, write_trial
from tests.website.site_results import make_results

Serve = Callable[[Path], Pages]
ALPHA, BETA = trial_page("alpha-1", "wrong_port"), trial_page("beta-1", "wrong_port")
COMPARE = f"#/compare/{quote('0/alpha-1/wrong_port/0', safe='')}/{quote('0/beta-1/wrong_port/0', safe='')}"


def test_trials_are_listed_with_the_reason_of_each_failure(pages: Pages) -> None:
    pages.open("", "#trials")
    assert sorted(pages.all("#trials td.text a")) == ["lost_packets #1", "wrong_port", "wrong_port"]
    assert "no such model" in pages.text("#trials")
    assert pages.text("#count") == "3 of 3 trials, 1 passed"
    assert "token" not in pages.chrome.current_url
    assert pages.errors() == []


def test_filters_and_groups_are_in_the_address(pages: Pages) -> None:
    pages.open("", "#trials")
    Select(pages.find("#filter-agent")).select_by_visible_text("beta")
    pages.wait(lambda: len(pages.all("#trials td.text a")) == 2)
    assert pages.hash == "#/?agent=beta"
    Select(pages.find("#group")).select_by_visible_text("Family")
    pages.wait(lambda: pages.all("tr.group"))
    assert pages.all("tr.group th") == [
        "network 0 of 1 graded trials passed",
        "virtualization 0 of 1 graded trials passed",
    ]
    pages.open("#/?q=packets", "#trials")
    assert pages.all("#trials td.text a") == ["lost_packets #1"]
    pages.open("#/?agent=nobody", "#nothing")
    assert pages.text("#nothing") == "No trial fits these filters."


def test_a_trial_shows_verdicts_truth_and_every_step(pages: Pages) -> None:
    pages.open(ALPHA, "#transcript .step")
    assert "example/model-1" in pages.text(".figures")
    assert pages.all("#verdicts tbody th") == ["detection", "localization"]
    assert "the system is broken, as the agent says" in pages.text("#verdicts")
    assert "The Service forwards to a port on which nothing listens." in pages.text("#truth")
    assert pages.all("#answer li.good") == ["user-service ✓ an accepted origin"]
    assert len(pages.all("#answer li.bad")) == 1
    first = pages.text("#step-2")
    for shown in ("kubectl get pods -A", "Thought 1: look at it.", "user-service-1 1/1", "500 ms", "1,000 + 20 tokens"):
        assert shown in first
    assert pages.all(".step.failed .title") == ["kubectl get podz"]


def test_a_trial_shows_its_system_with_truth_answer_and_the_signals_around_each_action(pages: Pages) -> None:
    pages.open(ALPHA, "#system .node")
    assert sorted(pages.all("#system .node .name")) == ["user-mongodb", "user-service", "web"]
    assert pages.all("#system .node.marked .name") == ["user-service"]
    assert pages.all("#system .node.marked .word") == ["at fault, named"]
    assert len(pages.all("#system .node.user-service, #system .node.level-2[data-service=user-service]")) == 1
    assert pages.text("#alerts li").startswith("HighErrorRate critical since ")
    assert pages.text("#signals-head") == "user-service"
    errors = "#system .chart:nth-of-type(2) .chart-value"
    assert pages.text(errors) == "100 %"
    pages.find("#system .segmented button:last-child").click()
    pages.wait(lambda: pages.text(errors) == "0 %")
    assert pages.all("#system .node.level-2") == []
    pages.find('#system [data-service="web"]').click()
    pages.wait(lambda: pages.text("#signals-head") == "web" and pages.hash == f"{ALPHA}?service=web")
    assert pages.all(".around") == []
    pages.press("j", "j")
    pages.wait(lambda: pages.all(".around .chart-title") == ["Requests", "Errors", "Latency, 95th percentile"])
    assert pages.text(".step[aria-current] .around p") == "web, five minutes before and after this step"
    assert pages.errors() == []


def test_a_step_is_searched_walked_and_linked_to(pages: Pages) -> None:
    pages.open(ALPHA, "#transcript .step")
    pages.press("/")
    pages.type("#search", "user-service")
    pages.wait(lambda: pages.text("#hits") == "2 of 5 steps")
    assert set(pages.all("mark")) == {"user-service"}
    pages.find("#search").send_keys(Keys.ENTER, Keys.ESCAPE)
    pages.wait(lambda: pages.hash == f"{ALPHA}?step=2&q=user-service")
    pages.press("n")
    pages.wait(lambda: "step=3" in pages.hash)
    pages.press("j")
    pages.wait(lambda: "step=4" in pages.hash)
    pages.press("k", "k", "s")
    pages.wait(lambda: "step=1" in pages.hash)
    pages.open(f"{ALPHA}?step=3&q=TargetPort", "[aria-current=step]")
    assert pages.find("[aria-current=step]").get_attribute("id") == "step-3"
    assert pages.text("mark") == "TargetPort"


def test_a_trial_is_copied_as_markdown(pages: Pages) -> None:
    pages.open(ALPHA, "#transcript .step")
    pages.chrome.execute_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    pages.find("#copy").click()
    pages.wait(lambda: pages.all("textarea.copied"))
    copied = pages.find("textarea.copied").get_attribute("value")
    assert copied.startswith("# wrong\\_port: alpha, pass\n")
    assert "| detection | Yes | passed | the system is broken, as the agent says |" in copied
    assert "### 2. kubectl get pods -A" in copied


def test_two_trials_are_compared_side_by_side(pages: Pages) -> None:
    pages.open("#/?q=wrong_port", "#trials")
    for box in pages.chrome.find_elements("css selector", "#trials input[type=checkbox]"):
        box.click()
    pages.wait(lambda: pages.find("#compare").is_enabled())
    pages.find("#compare").click()
    pages.wait(lambda: pages.all("#pairs li"))
    assert pages.text("#divergence") == "They do the same up to act 1, and differ from act 2 on."
    pages.open(ALPHA, "#compare-with")
    Select(pages.find("#compare-with")).select_by_index(1)
    pages.wait(lambda: pages.all("#pairs li.differs"))
    assert pages.hash == COMPARE


@pytest.mark.parametrize(
    ("page", "shows"), [("#/", "#trials"), (ALPHA, ".step"), (BETA, ".step"), (COMPARE, "#pairs li")]
)
def test_what_hostile_agents_wrote_is_text(pages: Pages, page: str, shows: str) -> None:
    pages.open(page, shows)
    assert pages.chrome.execute_script("return window.broken") is None
    assert pages.chrome.find_elements("css selector", "main script, main img, main svg:not(.graph > svg)") == []
    shown = pages.text()
    assert "<script>window.broken = 1</script>" in shown
    assert "\x1b" not in shown and "\u202e" not in shown
    assert pages.errors() == []


def test_the_policy_refuses_what_the_pages_never_do(pages: Pages) -> None:
    pages.open("", "#trials")
    script = "try { document.body.innerHTML = arguments[0]; return 'done' } catch (problem) { return problem.name }"
    assert pages.chrome.execute_script(script, HOSTILE) == "TypeError"


def test_an_exported_trial_needs_nothing_but_its_file(pages: Pages, root: Path, tmp_path: Path) -> None:
    trial = Catalog([root]).find("0/alpha-1/wrong_port/0")
    assert trial is not None
    (tmp_path / "trial.html").write_text(exported(trial.document()), encoding="utf-8")
    pages.chrome.get((tmp_path / "trial.html").as_uri())
    pages.wait(lambda: pages.all("#transcript .step"))
    assert "TargetPort: 9999/TCP" in pages.text()
    assert pages.chrome.execute_script("return window.broken") is None
    assert pages.all("#export") == []
    script = "return performance.getEntriesByType('resource').map((one) => one.name)"
    assert [name for name in pages.chrome.execute_script(script) if not name.startswith("data:")] == []
    pages.press("j")
    pages.wait(lambda: pages.all("[aria-current=step]"))
    assert pages.errors() == []


def test_a_running_trial_is_followed_to_its_result(served: Serve, tmp_path: Path) -> None:
    run = tmp_path / "live-1"
    log = Session(run / ".live")
    for entry in session([("kubectl get nodes", "3 nodes")]):
        log.note(entry.pop("what"), **{key: value for key, value in entry.items() if key != "at"})
    pages = served(tmp_path)
    pages.open("#/?q=running", "#trials")
    assert pages.all("#trials td.text a") == ["(in progress)"]
    pages.find("#trials td.text a").click()
    pages.wait(lambda: len(pages.all("#transcript .step")) == 1)
    assert "live" in pages.text(".sticky")
    log.note("action", step=2, text="```\nkubectl top nodes\n```")
    pages.wait(lambda: len(pages.all("#transcript .step")) == 2)
    document = result("wrong_port", agent="gamma", outcome="fail", session=log.session_id)
    folder = write_trial(run, document)
    log.move(folder / "session.jsonl")
    pages.wait(lambda: pages.all("#verdicts"))
    assert pages.hash == trial_page("live-1", "wrong_port")


def test_a_leaderboards_runs_are_shown_too(served: Serve, tmp_path: Path) -> None:
    make_results(tmp_path / "board", ["alpha", "beta"], 2, details=True)
    rows = Catalog([tmp_path / "board"]).rows()
    assert sorted((row.agent, row.problem, row.model) for row in rows)[0] == ("alpha", "Scenario-1", "model-0")
    pages = served(tmp_path / "board")
    pages.open("#/?group=model", "tr.group")
    assert pages.all("tr.group th")[0].startswith("model-0")
    pages.open(trial_page("alpha", "Scenario-1", 1), ".step")
    assert "<script>window.broken = 1</script>" in pages.text("#transcript")
    assert "root_cause_entity_f1" in pages.text("#scores-head + dl")
    assert pages.errors() == []


def test_a_long_transcript_and_a_large_log_can_be_read(served: Serve, tmp_path: Path) -> None:
    acts = [(f"kubectl get pod number-{n}", f"pod {n}\n" * 20) for n in range(2000)]
    folder = write_trial(tmp_path / "long-1", result("long", agent="alpha", outcome="pass"), session(acts))
    (folder / "agent.log").write_text("a line of the log\n" * 580_000)  # 10 MB
    pages = served(tmp_path)
    pages.open(trial_page("long-1", "long") + "?step=1500", "#step-2001")
    assert pages.find("[aria-current=step]").get_attribute("id") == "step-1500"
    pages.press("/")
    pages.type("#search", "number-1234")
    pages.wait(lambda: pages.text("#hits") == "1 of 2001 steps")
    assert "Show 10,4" in pages.text("section:last-of-type .more")


def test_a_narrow_window_shows_everything_without_scrolling_sideways(pages: Pages) -> None:
    pages.chrome.set_window_size(500, 800)
    try:
        for page, shows in (("#/", "#trials"), (ALPHA, ".step"), (COMPARE, "#pairs li")):
            pages.open(page, shows)
            script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert pages.chrome.execute_script(script) == 0, page
    finally:
        pages.chrome.set_window_size(1100, 760)


def test_an_address_that_leads_nowhere_says_so(pages: Pages) -> None:
    pages.open("#/trial/0%2Fnothing", "[role=status]")
    pages.wait(lambda: "Error: there is no trial '0/nothing'" in pages.text())
    pages.open("#/constructor", "[role=alert]")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_wrong(pages: Pages, axe: str, theme: str) -> None:
    for page, shows in (("#/?group=agent", "#trials"), (ALPHA, ".step"), (COMPARE, "#pairs li")):
        pages.open(page, shows)
        pages.chrome.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
        pages.chrome.execute_script(axe)
        found = pages.chrome.execute_async_script(
            "const done = arguments[0]; axe.run().then((result) => done(JSON.stringify("
            "result.violations.map((one) => one.id + ': ' + one.nodes[0].html))))"
        )
        assert json.loads(found) == [], page
