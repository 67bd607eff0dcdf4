"""What the leaderboard costs beside its agents: `python benchmarks/leaderboard.py`.

Overhead of a run (an agent that takes no time), memory of its worker, summing up 200 finished runs, and a site of a
thousand agents on a hundred incidents.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "website")]

from site_results import make_results  # noqa: E402

from itbench_leaderboard import aggregation  # noqa: E402
from itbench_leaderboard.configuration import load  # noqa: E402
from itbench_leaderboard.executors.local import Local  # noqa: E402
from itbench_leaderboard.incidents import find  # noqa: E402
from itbench_leaderboard.jobs import Job  # noqa: E402
from itbench_leaderboard.judging import Judge  # noqa: E402
from itbench_leaderboard.outcomes import Outcome, Report  # noqa: E402
from itbench_leaderboard.runs import run_of  # noqa: E402
from tests.leaderboard.incidents import make_snapshots, write_configuration  # noqa: E402
from website.building import build  # noqa: E402

RUNS = 7


def overhead(place: Path) -> None:
    """One run from beginning to verdict."""
    make_snapshots(place / "snapshots", 1)
    config = load(write_configuration(place, agents=("good",)))
    agent = config.named_agents()["good"]
    incident, judge = find(config)[0], Judge()
    seconds = []
    for number in range(1, RUNS + 1):
        run = run_of(config.leaderboard_dir, "good", incident.name, number)
        began = time.perf_counter()
        with run.locked():
            attempt = run.begin("now")
            job = Job("good", agent.model_dump(mode="json"), incident, number, str(attempt.workspace), 60.0)
            report = Local().carry_out(job, attempt)
            assert report.outcome is Outcome.ANSWERED, report
            run.end(attempt, report)
            run.judged(judge.verdict(run, incident, agent))
        seconds.append(time.perf_counter() - began)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"one run           wall {statistics.median(seconds):.2f} s, processor {used.ru_utime / RUNS:.2f} s")
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
                run.judged(judge.verdict(run, incident, agent))
    began, worked = time.perf_counter(), time.process_time()
    aggregation.aggregate(config.leaderboard_dir, config.named_agents(), incidents, runs=4, k=3)
    wall, processor = time.perf_counter() - began, time.process_time() - worked
    print(f"{5 * len(incidents) * 4} runs summed up  wall {wall:.2f} s, processor {processor:.2f} s")


def site(place: Path) -> None:
    results = make_results(place / "board", [f"agent-{number}" for number in range(1000)], 100)
    began, worked = time.perf_counter(), time.process_time()
    build(results, place / "site")
    wall, processor = time.perf_counter() - began, time.process_time() - worked
    print(f"site, 1000 x 100  wall {wall:.1f} s, processor {processor:.1f} s")


def main() -> None:
    for measure in (overhead, summing_up, site):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            measure(Path(folder))


if __name__ == "__main__":
    main()
