"""Every page in a real browser, opened from files."""

from __future__ import annotations

import csv
import http.server
import json
import re
import threading
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import duckdb
import pytest
from browsing import Browser
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait
from site_results import HOSTILE, make_results

from website.building import SiteError, build

AGENTS = ["alpha", "beta", "gamma", "delta"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("site")
    build(make_results(place / "board", AGENTS, 8, details=True), place / "site")
    return (place / "site").as_uri() + "/"


def test_ranking_is_shown_in_order_with_its_doubts(browser: Browser, site: str) -> None:
    browser.open(site)
    assert browser.all("#ranking td.name a") == AGENTS
    assert browser.all("#ranking .doubt") == ["within noise of the next"] * 3
    assert browser.complaints() == []
    browser.picture("leaderboard-ranking")


def test_the_rank_does_not_depend_on_the_order_of_the_table(browser: Browser, site: str) -> None:
    browser.open(site, "#/?sort=cost")
    assert browser.all("#ranking td.name a") == AGENTS[::-1]
    assert browser.all("#ranking tbody td:first-child") == ["4", "3", "2", "1"]
    browser.open(site, "#/?q=beta")
    assert browser.all("#ranking tbody td:first-child") == ["2"], "a search does not promote"


def test_the_front_says_what_this_is_until_something_is_chosen(browser: Browser, site: str) -> None:
    browser.open(site)
    assert "recorded incidents they name the root causes" in browser.text("#front")
    assert browser.all("#front-picture a text:first-child") == AGENTS
    browser.open(site, "#/?difficulty=hard")
    assert browser.all("#front") == []


def test_live_problems_and_recordings_are_never_one_number(browser: Browser, tmp_path: Path) -> None:
    """Half of the incidents are live: their scores are 1, those of the recordings 0."""
    results = make_results(tmp_path / "board", ["alpha", "beta"], 4)
    board = json.loads((results / "leaderboard.json").read_text())
    for number in (1, 2):
        board["incidents"][f"Scenario-{number}"]["kind"] = "live"
    board["metrics"] += ["mitigation"]
    (results / "leaderboard.json").write_text(json.dumps(board))
    for agent in ("alpha", "beta"):
        document = json.loads((results / f"{agent}.json").read_text())
        for name, scenario in document["scenarios"].items():
            live = board["incidents"][name]["kind"] == "live"
            run = {"run": 1, "outcome": "answered", "error": None, "cost_usd": 3.0 if live else 1.0}
            scores = {"score": float(live), **({"mitigation": 1.0} if live else {"root_cause_entity_f1": 0.0})}
            scenario["runs"] = [{**run, "scores": scores, "duration_seconds": 60.0 if live else 5.0}]
            scenario["statistics"] = {metric: {"mean": value} for metric, value in scores.items()}
        (results / f"{agent}.json").write_text(json.dumps(document))
    build(results, tmp_path / "site", "The Authors")
    base = (tmp_path / "site").as_uri() + "/"
    browser.open(base)
    assert browser.all("#ranking tbody tr:first-child td.number") == [
        *("1", "0.000", "0.00", "–", "–", "2/2", "$1.00", "5.0 s"),
    ], "score, pass@1, pass@3, pass^3, runs, cost and time are all of the recordings"
    assert "mitigation" not in browser.all("#filter-metric option")
    assert browser.all("#ranking thead th.number")[3:5] == ["pass@3", "pass^3"]
    browser.open(base, "#/?kind=live")
    assert browser.all("#ranking tbody tr:first-child td.number")[1:2] == ["1.000"]
    assert browser.all("#ranking tbody tr:first-child td.number")[-2:] == ["$3.00", "60.0 s"]
    assert browser.all("#filter-metric optgroup[label=Stages] option") == ["mitigation"]
    assert "root_cause_entity_f1" not in browser.all("#filter-metric option")
    for page in ("#/heatmap", "#/breakdown?by=difficulty", "#/plots", "#/compare?agents=alpha,beta"):
        browser.open(base, page)
        assert not re.search(r"(?<!\$)1\.0", browser.text("table")), page
    browser.open(base, "#/method")
    assert "The Authors" in browser.text("#facts") and "never averaged" in browser.text()
    assert browser.complaints() == []


def test_a_breakdown_by_family_and_by_difficulty(browser: Browser, site: str) -> None:
    browser.open(site, "#/breakdown")
    assert browser.all("#breakdown thead th") == ["#", "Agent", "All", "Change (3)", "Chaos (2)", "Network (3)"]
    Select(browser.chrome.find_element("css selector", "#by")).select_by_value("difficulty")
    browser.wait("#/breakdown?by=difficulty")
    assert browser.all("#breakdown thead th")[3:] == ["easy (4)", "hard (4)"]
    assert browser.all("#breakdown tbody tr:first-child td")[:2] == ["1", "alpha"]
    assert browser.complaints() == []


def test_the_data_can_be_taken_away(browser: Browser, site: str) -> None:
    browser.open(site, "#/method")
    links = browser.chrome.execute_script("return [...document.querySelectorAll('#downloads a')].map((a) => a.href)")
    files = [Path(unquote(urlsplit(link).path)) for link in links]
    assert [file.name for file in files] == ["leaderboard.json", "runs.csv", "runs.parquet"]
    with files[1].open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == 4 * 8 and rows[0]["agent"] == "alpha" and rows[0]["family"] == "Change"
    with duckdb.connect() as connection:
        count = connection.execute(f"SELECT count(*) FROM '{files[2]}' WHERE score <= 1").fetchone()
    assert count == (32,)
    assert browser.complaints() == []


def test_a_click_on_a_column_sorts_and_a_second_one_turns_it_round(browser: Browser, site: str) -> None:
    browser.open(site)
    browser.click("[data-sort=cost]")
    assert browser.all("#ranking td.name a") == AGENTS[::-1]
    browser.click("[data-sort=cost]")
    assert browser.all("#ranking td.name a") == AGENTS
    sorted_by = browser.chrome.find_element("css selector", "th[aria-sort=descending]").text
    assert "USD" in sorted_by


def test_a_filter_counts_only_what_fits_and_lives_in_the_address(browser: Browser, site: str) -> None:
    browser.open(site)
    whole = browser.text("#ranking tbody td:nth-child(4)")
    browser.open(site, "#/?difficulty=hard")
    assert "4 recorded incidents, 4 agents" in browser.text("#ranking caption")
    assert browser.text("#ranking tbody td:nth-child(4)") != whole
    Select(browser.chrome.find_element("css selector", "#filter-model")).select_by_value("model-1")
    browser.wait("#/?difficulty=hard&model=model-1")
    assert browser.all("#ranking td.name a") == ["beta"]


def test_unfiltered_scores_are_those_of_the_results_and_an_all_embracing_filter_agrees(
    browser: Browser, site: str
) -> None:
    browser.open(site, "#/?metric=detection")
    whole = browser.all("#ranking tbody td:nth-child(4)")
    browser.open(site, "#/?metric=detection&application=shop")
    assert browser.all("#ranking tbody td:nth-child(4)") == whole


def test_heat_map_is_walked_with_arrow_keys_and_opened_with_enter(browser: Browser, site: str) -> None:
    browser.open(site, "#/heatmap")
    assert len(browser.all("#heat tbody td")) == 4 * 8
    browser.picture("leaderboard-heatmap")
    first = browser.chrome.find_element("css selector", "#heat td[tabindex='0']")
    first.send_keys(Keys.ARROW_DOWN)
    second = browser.chrome.switch_to.active_element
    assert second.get_attribute("aria-label").startswith("beta, Scenario-1")
    second.send_keys(Keys.ENTER)
    browser.wait("#/run/beta/Scenario-1/1")


def test_plots_name_the_front(browser: Browser, site: str) -> None:
    browser.open(site, "#/plots")
    assert len(browser.chrome.find_elements("css selector", "#plot-cost circle")) == 4
    assert browser.all("#plot-time ~ .scroll td.name a") == ["alpha"]
    browser.picture("leaderboard-plots")


def current(browser: Browser) -> list[str]:
    """The numbers of the chosen steps."""
    return browser.all("#transcript [aria-current=step] .number")


def test_a_run_is_read_step_by_step_and_linked_to(browser: Browser, site: str) -> None:
    browser.open(site, "#/run/alpha/Scenario-2/1")
    assert browser.text("#hits") == "2 steps" and current(browser) == []
    browser.chrome.find_element("css selector", "#step-2").click()
    assert current(browser) == ["2"]
    assert browser.chrome.current_url.endswith("?step=2")
    browser.open(site, "#/run/alpha/Scenario-2/1?step=2")
    assert current(browser) == ["2"]
    search = browser.chrome.find_element("css selector", "#search")
    search.send_keys("evil")
    assert browser.text("#hits") == "2 of 2 steps" and browser.all("#transcript mark")


def test_an_incident_shows_the_truth_against_any_answer(browser: Browser, site: str) -> None:
    browser.open(site, "#/incident/Scenario-2")
    assert browser.all("#against h2") == ["The truth", "The answer"]
    assert not browser.chrome.find_element("css selector", "#against").is_displayed(), "it gives the answer away"
    browser.chrome.find_element("css selector", "#truth summary").click()
    chosen = Select(browser.chrome.find_element("css selector", "#answer-of"))
    assert [option.text for option in chosen.options] == [f"{name} #1" for name in AGENTS]
    chosen.select_by_value("gamma #1")
    browser.wait("#/incident/Scenario-2?answer=gamma+%231")
    assert browser.chrome.find_element("css selector", "#against").is_displayed()
    drawn = browser.chrome.find_elements("css selector", "#against svg[role=img]")
    assert len(drawn) == 2 and all("leads to shop/Service/cart" in one.get_attribute("aria-label") for one in drawn)


def test_an_incident_has_charts_and_a_timeline(browser: Browser, site: str) -> None:
    browser.open(site, "#/incident/Scenario-2")
    assert browser.all("#charts .panel-head .badge") == ["deviates strongly", "as usual"]
    drawn = browser.chrome.find_elements("css selector", "#charts .chart [role=img]")
    labels = [str(one.get_attribute("aria-label")) for one in drawn]
    assert labels == ["Requests: now 20/s", "Errors: now 100 %"] * 2, "no chart of a latency that was never measured"
    WebDriverWait(browser.chrome, 10).until(lambda chrome: len(browser.all("#charts canvas")) == 4)
    wide = "return [...document.querySelectorAll('#charts canvas')].every((one) => one.clientWidth > 200)"
    WebDriverWait(browser.chrome, 10).until(lambda chrome: chrome.execute_script(wide))
    assert "2026-01-01 00:02:00" in browser.text()


def test_a_run_is_walked_with_the_keyboard_alone(browser: Browser, site: str) -> None:
    browser.open(site, "#/run/alpha/Scenario-2/1")
    body = browser.chrome.find_element("css selector", "body")
    body.send_keys("jj")
    assert current(browser) == ["2"]
    body.send_keys("k")
    assert current(browser) == ["1"]
    browser.go("#/run/beta/Scenario-2/1")
    body.send_keys("j")
    assert current(browser) == ["1"], "the page that was left does not hear the keys any more"
    browser.open(site)
    browser.chrome.find_element("css selector", "body").send_keys(Keys.TAB)
    assert browser.chrome.switch_to.active_element.get_attribute("id") == "skip"


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("family=Chaos", "2 recorded incidents, 4 agents"),
        ("difficulty=easy", "4 recorded incidents, 4 agents"),
        ("application=shop", "8 recorded incidents, 4 agents"),
        ("kind=snapshot", "8 recorded incidents, 4 agents"),
        ("model=model-2", "8 recorded incidents, 1 agents"),
        ("family=Chaos&difficulty=hard&model=model-0", "1 recorded incident"),
        ("q=GAM", "8 recorded incidents, 1 agents"),
    ],
)
def test_every_filter_narrows_every_table(browser: Browser, site: str, query: str, shown: str) -> None:
    browser.open(site, f"#/?{query}")
    assert shown in browser.text("#ranking caption")
    agents = len(browser.all("#ranking tbody tr"))
    browser.open(site, f"#/heatmap?{query}")
    assert len(browser.all("#heat tbody tr")) == agents
    browser.open(site, f"#/plots?{query}")
    assert len(browser.chrome.find_elements("css selector", "#plot-cost circle")) == agents


@pytest.mark.parametrize("page", ["#/run/alpha/Scenario-1/1?step=2", "#/incident/Scenario-1", "#/agent/alpha"])
def test_what_hostile_agents_wrote_is_text(browser: Browser, site: str, page: str) -> None:
    browser.open(site, page)
    assert browser.chrome.execute_script("return window.broken") is None
    assert browser.chrome.find_elements("css selector", "main script, main img, main svg[onload]") == []
    shown = browser.text()
    assert "\x1b" not in shown and "\u202e" not in shown
    if page != "#/agent/alpha":
        assert "<script>window.broken = 1</script>" in shown
    assert browser.complaints() == []


def test_the_policy_refuses_what_the_pages_never_do(browser: Browser, site: str) -> None:
    browser.open(site)
    refused = browser.chrome.execute_script(
        "try { document.body.innerHTML = arguments[0]; return 'done' } catch (problem) { return problem.name }", HOSTILE
    )
    assert refused == "TypeError"


def test_any_number_of_agents_are_compared(browser: Browser, site: str) -> None:
    browser.open(site, "#/compare?agents=alpha,beta,delta")
    assert len(browser.all(".verdict")) == 3 and "Holm" in browser.text()
    assert [text.rsplit(": ", 1)[1] for text in browser.all(".verdict")] == ["more than noise."] * 3
    Select(browser.chrome.find_element("css selector", "#compare-add")).select_by_value("gamma")
    browser.wait("#/compare?agents=alpha%2Cbeta%2Cdelta%2Cgamma")
    assert len(browser.all(".verdict")) == 6
    browser.click("#compared button")
    assert len(browser.all(".verdict")) == 3 and "alpha" not in browser.text("#verdict")
    assert browser.complaints() == []


def test_hundreds_of_agents_are_compared_with_one_of_them(browser: Browser, tmp_path: Path) -> None:
    """A sentence for each pair would be tens of thousands: a table that scrolls and has pages."""
    names = [f"agent-{number:03}" for number in range(300)]
    build(make_results(tmp_path / "board", names, 16), tmp_path / "site")
    base = (tmp_path / "site").as_uri() + "/"
    browser.open(base, "#/compare?agents=" + "%2C".join(names[:8]))
    assert len(browser.all(".verdict")) == 28 and not browser.all("#against")
    Select(browser.chrome.find_element("css selector", "#compare-add")).select_by_value(names[100])
    browser.wait("#/compare?agents=" + "%2C".join([*names[:8], names[100]]))
    assert not browser.all(".verdict") and len(browser.all("#against tbody tr")) == 8
    browser.click("#compare-all")
    assert browser.chrome.execute_script("return location.hash") == "#/compare?all=1"
    assert "300 agents" in browser.text("#compared") and not browser.all("#compare-add")
    assert len(browser.all("#against tbody tr")) == 50
    assert len(browser.all("#by-incident tbody tr")) == 16 and len(browser.all("#by-incident thead th")) == 52
    assert browser.all("#against td.name")[0] == names[1], "the nearest to the best first"
    browser.click("#next-page")
    assert browser.all("#against td.name")[0] == names[51]
    Select(browser.chrome.find_element("css selector", "#compare-against")).select_by_value(names[150])
    browser.wait("#/compare?all=1&against=agent-150")
    first = browser.all("#against tbody tr:first-child td")
    assert first[0] == names[0] and float(first[2]) > 0 and first[5] == "more than noise"
    wide = "return [document.documentElement.scrollWidth <= innerWidth, "
    wide += "document.querySelector('#by-incident').parentElement.scrollWidth > innerWidth]"
    assert browser.chrome.execute_script(wide) == [True, True], "the table scrolls, not the page"
    browser.click("#against tbody tr:first-child button")
    assert "299 agents" in browser.text("#compared")
    assert browser.complaints() == []


def test_two_agents_are_compared(browser: Browser, site: str) -> None:
    browser.open(site, "#/compare?a=alpha&b=delta")
    assert "Over 8 shared incidents alpha scores 0." in browser.text("#verdict")
    assert "more than noise" in browser.text("#verdict")
    browser.open(site, "#/compare?a=delta&b=alpha")
    assert "alpha scores 0." in browser.text("#verdict"), "the better one first, whoever is named first"


@pytest.mark.parametrize(
    "page",
    [
        "#/agent/nobody",
        "#/run/alpha/Scenario-1/..%2F..%2Fx",
        "#/constructor",
        "#/incident/%E0%A4%A",
        "#/run/alpha/Scenario-1/77",
    ],
)
def test_an_address_that_leads_nowhere_says_so(browser: Browser, site: str, page: str) -> None:
    browser.open(site, page)
    assert "there is no" in browser.text("#problem")


def test_every_control_has_a_name_and_every_page_one_heading(browser: Browser, site: str) -> None:
    for page in (
        "#/",
        "#/heatmap",
        "#/breakdown",
        "#/plots",
        "#/incidents",
        "#/compare",
        "#/method",
        "#/incident/Scenario-1",
        "#/run/alpha/Scenario-1/1",
    ):
        browser.open(site, page)
        nameless = browser.chrome.execute_script(
            """return [...document.querySelectorAll('button, select, input, a[href], svg:not([aria-hidden])')]
            .filter((one) =>
            !(one.textContent.trim() || one.getAttribute('aria-label') || one.labels?.length))
            .map((one) => one.outerHTML)"""
        )
        assert nameless == []
        assert len(browser.all("h1")) == 1


def test_axe_finds_nothing_wrong_on_any_page_dark_or_light(browser: Browser, site: str, axe: str) -> None:
    """The checker that accessibility engineers use: names, roles, contrast, headings, landmarks, focus."""
    pages = (
        "#/",
        "#/heatmap",
        "#/plots",
        "#/incidents",
        "#/compare",
        "#/breakdown",
        "#/method",
        "#/agent/alpha",
        "#/run/alpha/Scenario-1/1?step=2",
    )
    found = {}
    for page in (*pages, "#/incident/Scenario-1?answer=beta+%231"):
        for theme in ("light", "dark"):
            browser.open(site, page)
            browser.chrome.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
            browser.chrome.execute_script(axe)
            wrong = browser.chrome.execute_async_script(
                """const done = arguments[arguments.length - 1];
                axe.run().then((result) => done(result.violations.map((one) => one.id + ": " + one.nodes[0].html)),
                               (problem) => done([String(problem)]))"""
            )
            found |= {(page, theme): wrong} if wrong else {}
    assert found == {}


def test_dark_and_light(browser: Browser, site: str) -> None:
    browser.open(site)
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = browser.chrome.execute_script(colour)
    browser.click("#theme")
    assert browser.chrome.execute_script(colour) != before
    browser.picture("leaderboard-dark")
    browser.click("#theme")


def test_nothing_but_tables_scrolls_sideways_on_a_phone(browser: Browser, site: str) -> None:
    browser.chrome.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        for page in (
            *("#/", "#/heatmap", "#/plots", "#/run/alpha/Scenario-1/1", "#/incident/Scenario-1", "#/compare"),
            *("#/breakdown", "#/method"),
        ):
            browser.open(site, page)
            width = browser.chrome.execute_script("return document.documentElement.scrollWidth")
            assert width <= 360, page
    finally:
        browser.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_no_results_and_one_agent(browser: Browser, tmp_path: Path) -> None:
    for count in (0, 1):
        place = tmp_path / str(count)
        build(make_results(place / "board", AGENTS[:count], 2 * count), place / "site")
        base = (place / "site").as_uri() + "/"
        for page in ("#/", "#/heatmap", "#/plots", "#/incidents", "#/compare", "#/breakdown", "#/method"):
            browser.open(base, page)
            assert len(browser.all("h1")) == 1 and browser.all("#problem") == []
        browser.open(base)
        assert browser.all("#ranking td.name a") == AGENTS[:count]


def test_a_run_on_a_live_problem_shows_its_stages(browser: Browser, tmp_path: Path) -> None:
    results = make_results(tmp_path / "board", ["alpha"], 1, details=True)
    run = tmp_path / "board" / "alpha" / "Scenario-1" / "1"
    stages = [
        {
            "stage": "detection",
            "submitted": True,
            "submission": HOSTILE,
            "wall_seconds": 12.3,
            "verdict": {"passed": True},
        },
        {"stage": "mitigation", "submitted": False, "verdict": {"passed": False, "reasons": ["requests fail"]}},
    ]
    graph = {"nodes": ["cart"], "edges": [], "roots": ["cart"]}
    verdict = {"details": {"stages": stages, "details": {"predicted_graph": graph}}, "truth": {"gt_graph": graph}}
    (run / "judge_output.json").write_text(json.dumps(verdict))
    (run / "agent_output.json").write_text(json.dumps({"stages": {"detection": HOSTILE, "localization": ["cart"]}}))
    build(results, tmp_path / "site")
    base = (tmp_path / "site").as_uri() + "/"
    browser.open(base, "#/run/alpha/Scenario-1/1")
    assert browser.all("#verdicts tbody th") == ["detection", "mitigation"]
    assert browser.all("#verdicts tbody .badge") == ["passed", "failed"]
    assert "<script>window.broken = 1</script>" in browser.all("#verdicts tbody td.text")[0]
    assert browser.all("#verdicts tbody tr:nth-child(2) td") == ["failed", "no answer", "–", "–", "requests fail"]
    assert browser.chrome.execute_script("return window.broken") is None
    browser.open(base, "#/incident/Scenario-1")
    assert browser.all("#said tbody td:nth-child(4)") == ["cart"]
    assert browser.complaints() == []


def test_served_over_http(browser: Browser, tmp_path: Path) -> None:
    build(make_results(tmp_path / "board", AGENTS, 3), tmp_path / "site")
    handler = partial(_Quiet, directory=str(tmp_path / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.open(f"http://127.0.0.1:{server.server_port}/")
        assert browser.all("#ranking td.name a") == AGENTS
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


def test_a_thousand_agents_on_a_hundred_incidents_stay_usable(browser: Browser, tmp_path: Path) -> None:
    names = [f"agent-{number:04}" for number in range(1000)]
    build(make_results(tmp_path / "board", names, 100), tmp_path / "site")
    base = (tmp_path / "site").as_uri() + "/"
    browser.open(base)
    assert len(browser.all("#ranking tbody tr")) == 100  # a page of it
    assert browser.chrome.execute_script("return document.querySelectorAll('*').length") < 6000
    browser.go("#/?family=Chaos")
    assert "33 recorded incidents, 1000 agents" in browser.text("#ranking caption")
    browser.go("#/heatmap?page=3")
    assert browser.all("#heat tbody th")[0] == "agent-0150"


def test_a_site_is_never_built_over_something_else(tmp_path: Path) -> None:
    results = make_results(tmp_path / "board", AGENTS, 2)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("mine")
    with pytest.raises(SiteError, match="holds something else"):
        build(results, tmp_path / "home")
    with pytest.raises(SiteError, match=r"there is no leaderboard\.json"):
        build(tmp_path, tmp_path / "site")
