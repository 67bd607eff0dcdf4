"""What `srearena view` costs the simulation of a cluster that is watched, and the time to the first paint of its pages.

    python -m benchmarks.view                   a minute of Hotel Reservation watched, and one that is not; all pages
    python -m benchmarks.view --seconds 20      shorter
    python -m benchmarks.view --rounds 9        more half hours, for a machine with other work
    python -m benchmarks.view --no-browser      without the pages, which need Chromium and its driver

The cost is processor time of the cluster's process per second of real time, watched (overview and traces, each
every five seconds; an open page asks no more) and unwatched; and how much longer the cluster needs for half an hour of
virtual time while it is watched: the middle of several half hours, in turn watched and unwatched. First paint is
Chromium's first contentful paint, the middle of three visits.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import httpx

from srearena.conductor.results.store import failed_document
from srearena.interpreters import python_module

NAME = "watched"
PANELS = ("", "/traces")
"""An open page asks for the overview and one tab: the most expensive one."""
EVERY = 5.0
SETTLED = EVERY + 2.0
"""Real seconds in which every panel is asked for once."""
VISITS = 3
ROOT = Path(__file__).parent.parent


def running_cluster(state: Path) -> dict[str, Any]:
    command = python_module("srearena", "up", "hotel_reservation", "--name", NAME, "--history", "600")
    words = [*command, "--detach", "--json"]
    done = subprocess.run(words, env=environment(state), capture_output=True, text=True, check=True)
    facts: dict[str, Any] = json.loads(done.stdout)
    (entry,) = [path for path in state.rglob("*.json") if f'"{NAME}"' in path.read_text()]
    return {**facts, "pid": json.loads(entry.read_text())["pid"]}


def environment(state: Path) -> dict[str, str]:
    return {**os.environ, "SREARENA_STATE_DIR": str(state)}


@contextmanager
def served(state: Path, folder: Path) -> Iterator[dict[str, str]]:
    command = python_module("srearena", "view", str(folder), "--json")
    with subprocess.Popen(command, env=environment(state), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def processor_seconds(pid: int) -> float:
    """Of all threads, in nanoseconds of the scheduler: ticks of the clock are as long as many an answer."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


@contextmanager
def watching(link: dict[str, str]) -> Iterator[None]:
    """Ask what an open page asks, for as long as the context lasts."""
    ended = threading.Event()
    identity = quote(f"cluster:{NAME}", safe="")

    def ask() -> None:
        headers = {"authorization": f"Bearer {link['token']}"}
        with httpx.Client(base_url=link["url"], headers=headers, timeout=60.0, trust_env=False) as client:
            while not ended.is_set():
                for panel in PANELS:
                    client.get(f"/api/incident{panel}?id={identity}").raise_for_status()
                ended.wait(EVERY)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def cost(pid: int, seconds: float) -> float:
    """Processor seconds per second of real time."""
    before, begun = processor_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return (processor_seconds(pid) - before) / (time.monotonic() - begun)


def half_an_hour(state: Path, pid: int) -> float:
    """Processor seconds for 1,800 virtual seconds, and for what open pages ask after them."""
    time.sleep(SETTLED)  # what pages ask about the time before
    before = processor_seconds(pid)
    command = python_module("srearena", "cluster", "advance", "1800", "--name", NAME)
    subprocess.run(command, env=environment(state), capture_output=True, check=True)
    time.sleep(SETTLED)
    return processor_seconds(pid) - before


def measure_live(state: Path, link: dict[str, str], pid: int, seconds: float, rounds: int) -> dict[str, float]:
    with watching(link):
        time.sleep(EVERY)  # the first questions read half an hour
        watched = cost(pid, seconds)
    unwatched = cost(pid, seconds)
    half_hours: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * rounds):
        # In turn, so that what grows with time in the cluster is in both; which one is first alternates too.
        is_watched = number % 4 in (0, 3)
        with watching(link) if is_watched else nullcontext():
            half_hours[is_watched].append(half_an_hour(state, pid))
    advanced_watched, advanced = median(half_hours[True]), median(half_hours[False])
    return {
        "watched_processor_share": round(watched, 4),
        "unwatched_processor_share": round(unwatched, 4),
        "cost_of_watching_percent_of_a_processor": round(100 * (watched - unwatched), 2),
        "half_an_hour_watched_processor_s": round(advanced_watched, 3),
        "half_an_hour_processor_s": round(advanced, 3),
        "half_an_hour_more_percent": round(100 * (advanced_watched / advanced - 1), 1),
    }


def results(folder: Path) -> Path:
    """A run of 200 trials, one of them with a transcript of 2,000 steps."""
    for number in range(200):
        place = folder / "run" / "trials" / "wrong_port" / str(number)
        place.mkdir(parents=True)
        document = failed_document("wrong_port", agent="rules", seed=0, trial=number, run="run", reason="")
        (place / "result.json").write_text(json.dumps(document))
    entries = [
        {"at": "2026-01-01T00:00:00+00:00", "what": what, "step": step, "text": text}
        for step in range(1, 2001)
        for what, text in (("action", f"```\nkubectl get pods -n shop-{step}\n```"), ("state", "NAME READY\n" * 20))
    ]
    log = folder / "run" / "trials" / "wrong_port" / "0" / "session.jsonl"
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder


def measure_paint(link: dict[str, str]) -> dict[str, float]:
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    chrome = Chrome(options=options, service=Service(shutil.which("chromedriver") or "chromedriver"))
    pages = {
        "trials": f"{link['link']}#/",
        "trial_of_2000_steps": f"{link['link']}#/trial/{quote('0/run/wrong_port/0', safe='')}",
        "incident": f"{link['link']}#/incident/{quote(f'cluster:{NAME}', safe='')}",
        "leaderboard_site": (ROOT / "website" / "index.html").as_uri(),
    }
    script = "return performance.getEntriesByName('first-contentful-paint').map((one) => one.startTime)[0] ?? null"
    figures: dict[str, float] = {}
    try:
        for name, address in pages.items():
            times = []
            for _ in range(VISITS):
                chrome.get("about:blank")
                chrome.get(address)
                while (painted := chrome.execute_script(script)) is None:
                    time.sleep(0.05)
                times.append(float(painted))
            figures[f"first_paint_{name}_ms"] = round(median(times))
    finally:
        chrome.quit()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-browser", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        facts = running_cluster(state)
        try:
            with served(state, results(Path(folder) / "results")) as link:
                figures = measure_live(state, link, facts["pid"], options.seconds, options.rounds)
                if not options.no_browser:
                    figures |= measure_paint(link)
            print(json.dumps(figures, indent=1))
        finally:
            down = python_module("srearena", "down", NAME)
            subprocess.run(down, env=environment(state), stdout=sys.stderr, check=False)


if __name__ == "__main__":
    main()
