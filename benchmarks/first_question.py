"""What the first metric question about a large recording costs: with the files of its objects alone, and with all.

    python -m benchmarks.first_question               821 MB, 440 MB of them metrics of 20 pods
    python -m benchmarks.first_question --scale 0.1

The incident is that of `benchmarks/snapshots.py`. Every question is asked in a process of its own with an empty cache.
`some` converts the files that the question is about (the conversion of the others in the background is turned off to
measure the question alone); `all` converts every file of metrics first. Figures are processor time of all threads,
without imports; a background thread would share the processor with the reader of the answer.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.snapshots import BAD, generate, pod_of
from sre_tools.offline_incident_analysis import Workspace, call_tool
from srearena.snapshots import Snapshot

QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "metrics of a pod": ("metric_analysis", {"k8_object_name": f"Pod/{pod_of(BAD)}"}),
    "metrics of a deployment": ("metric_analysis", {"k8_object_name": f"Deployment/{BAD}"}),
    "anomalies of a pod, begin given": (
        "get_metric_anomalies",
        {"k8_object_name": f"Pod/{pod_of(BAD)}", "pivot_time": "2025-06-01T10:30:00Z"},
    ),
    "anomalies of a deployment": ("get_metric_anomalies", {"k8_object_name": f"Deployment/{BAD}"}),
}


def processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ask(root: Path, question: str, everything: bool) -> dict[str, Any]:
    """The processor time of a question with an empty cache, and a digest of its answer."""
    Snapshot._convert_rest = lambda *_: None  # type: ignore[method-assign]
    tool, arguments = QUESTIONS[question]
    with tempfile.TemporaryDirectory(dir=root.parent) as cache, Workspace(root, cache=Path(cache)) as workspace:
        workspace.snapshot().rows("SELECT 1")  # the library's own start
        begun = processor()
        if everything:
            workspace.snapshot().table("metrics")
        reply = call_tool(workspace, tool, arguments)
        return {"seconds": processor() - begun, "answer": json.dumps(reply["data"], default=str)}


def measure(root: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for question in QUESTIONS:
        answers = {}
        for way in ("some", "all"):
            command = [sys.executable, "-m", "benchmarks.first_question", "--ask", question, "--root", str(root)]
            done = subprocess.run([*command, "--way", way], check=True, stdout=subprocess.PIPE, text=True)
            answers[way] = json.loads(done.stdout)
        assert answers["some"]["answer"] == answers["all"]["answer"], question
        some, every = answers["some"]["seconds"], answers["all"]["seconds"]
        found[question] = {"some_processor_s": some, "all_processor_s": every, "times": every / some}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--root", type=Path, help="a generated recording to use again")
    parser.add_argument("--ask", choices=QUESTIONS, help=argparse.SUPPRESS)
    parser.add_argument("--way", choices=("some", "all"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        print(json.dumps(ask(options.root, options.ask, options.way == "all")))
        return
    with tempfile.TemporaryDirectory() as temporary:
        root = options.root or Path(temporary) / "Scenario-1"
        if not root.exists():
            generate(root, options.scale)
        megabytes = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) / 1e6
        print(json.dumps({"megabytes": round(megabytes), **measure(root)}, indent=1))


if __name__ == "__main__":
    main()
