"""What the leaderboard costs beside its agents: `python benchmarks/leaderboard.py`.

Overhead of a run (an agent that takes no time), memory of its worker, summing up 200 finished runs, building a site of
a thousand agents on a hundred incidents, and reading it in a real Chromium where there is one. Wall time is that of the
machine as it is: the load average is printed, and the least of several beside the median.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "website")]

from site_results import make_results  # noqa: E402

from itbench_leaderboard import results  # noqa: E402
from itbench_leaderboard.config import load  # noqa: E402
from itbench_leaderboard.executors.local import Local  # noqa: E402
from itbench_leaderboard.incidents import find  # noqa: E402
from itbench_leaderboard.jobs import Job  # noqa: E402
from itbench_leaderboard.judging import Judge  # noqa: E402
from itbench_leaderboard.outcomes import Outcome, Report  # noqa: E402
from itbench_leaderboard.runner import run_of  # noqa: E402
from tests.leaderboard.incidents import make_snapshots, write_configuration  # noqa: E402
from website.building import build  # noqa: E402

RUNS = 7


def overhead(place: Path) -> None:
    """One run from beginning to verdict."""
    make_snapshots(place / "snapshots", 1)
    config = load(write_configuration(place, agents=("good",)))
    agent = config.named_agents()["good"]
    incident, judge = find(config)[0], Judge()
    seconds, own = [], time.process_time()
    for number in range(1, RUNS + 1):
        run = run_of(config.leaderboard_dir, "good", incident.name, number)
        began = time.perf_counter()
        with run.locked():
            attempt = run.begin("now")
            job = Job("good", agent.model_dump(mode="json"), incident, number, str(attempt.workspace), 60.0)
            report = Local().execute(job, attempt)
            assert report.outcome is Outcome.ANSWERED, report
            run.end(attempt, report)
            run.store_verdict(judge.verdict(run, incident, agent))
        seconds.append(time.perf_counter() - began)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = (used.ru_utime + used.ru_stime + time.process_time() - own) / RUNS
    walls = f"wall {statistics.median(seconds):.2f} s (least {min(seconds):.2f} s)"
    print(f"one run           {walls}, processor {busy:.2f} s")
    print(f"                  memory of the worker {used.ru_maxrss / 1024:.0f} MB")


def summing_up(place: Path) -> None:
    """Five agents, ten incidents, four runs."""
    make_snapshots(place / "snapshots", 10)
    config = load(write_configuration(place, agents=tuple("abcde"), runs=4))
    incidents, judge = find(config), Judge()
    answer = {"entities": [{"name": "shop/Deployment/cart", "contributing_factor": True}], "propagations": []}
    for name, agent in config.named_agents().items():
        for incident in incidents:
            for number in range(1, 5):
                run = run_of(config.leaderboard_dir, name, incident.name, number)
                run.directory.mkdir(parents=True)
                attempt = run.begin("now")
                (attempt.workspace / "agent_output.json").write_text(json.dumps(answer))
                run.end(attempt, Report(Outcome.ANSWERED, seconds=1.0))
                run.store_verdict(judge.verdict(run, incident, agent))
    began, worked = time.perf_counter(), time.process_time()
    results.aggregate(config.leaderboard_dir, config.named_agents(), incidents, runs=4, k=3)
    wall, processor = time.perf_counter() - began, time.process_time() - worked
    print(f"{5 * len(incidents) * 4} runs summed up  wall {wall:.2f} s, processor {processor:.2f} s")


def site(place: Path) -> None:
    results = make_results(place / "board", [f"agent-{number}" for number in range(1000)], 100)
    began, worked = time.perf_counter(), time.process_time()
    build(results, place / "site")
    wall, processor = time.perf_counter() - began, time.process_time() - worked
    print(f"site, 1000 x 100  wall {wall:.1f} s, processor {processor:.1f} s")
    reading((place / "site").as_uri() + "/")


def reading(base: str) -> None:
    """How long a reader waits for pages of that site."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        print("no Chromium with its driver here: pages are not measured")
        return
    from browsing import Browser
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = program
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    chrome = Chrome(options=options, service=Service(driver))
    try:
        browser = Browser(chrome)
        browser.open(base)  # the browser itself has started then
        pages = {
            "ranking, opened": "#/",
            "ranking, one family": "#/?family=Chaos",
            "heat map": "#/heatmap",
            "plots": "#/plots",
            "compare": "#/compare?a=agent-1&b=agent-900",
            "agent": "#/agent/agent-500",
            "incident": "#/incident/Scenario-50",
        }
        for name, page in pages.items():
            waits = []
            for _ in range(5):
                began = time.perf_counter()
                browser.open(base, page)
                waits.append(time.perf_counter() - began)
            print(f"  {name:<20} {statistics.median(waits):.2f} s (least {min(waits):.2f} s)")
    finally:
        chrome.quit()


def main() -> None:
    for measure in (overhead, summing_up, site):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            measure(Path(folder))
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
