"""What episodes cost: the wait for the first observation, memory, many at once, and proving problems valid.

    python benchmarks/arena.py                # all but the proofs
    python benchmarks/arena.py --verify 50    # the proofs of so many problems, two at a time

Everything is run as a user runs it, by the `srearena` command in a folder of its own. Times are on the wall.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

PROBLEM = "k8s_target_port-misconfig"
SCRIPT = """\
kubectl("get pods --all-namespaces")

submit("Yes")

submit(["user-service"])

submit({"system_level": "Virtualization", "fault_type": "Misconfiguration"})

submit()
"""
REPEATS = 5
AT_ONCE = 8


def srearena(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "srearena", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def run(folder: Path, name: str, *words: str) -> float:
    """Run the scripted agent; the seconds it took."""
    (folder / "script").write_text(SCRIPT)
    began = time.perf_counter()
    scripted = ("--agent", "scripted", "--script", "script")
    done = srearena(folder, "run", PROBLEM, *scripted, "--run", name, *words)
    if not (folder / "data/results" / name / "summary.csv").exists():
        raise SystemExit(f"the run failed: {done.stdout}{done.stderr}")
    return time.perf_counter() - began


def first_observation(folder: Path) -> list[float]:
    """From the command to the first thing an agent sees, several times."""
    waits = []
    for number in range(REPEATS):
        began = time.time()
        run(folder, f"first-{number}")
        session = folder / f"data/results/first-{number}/trials/{PROBLEM}/0/session.jsonl"
        opened = json.loads(session.read_text().splitlines()[0])
        waits.append(datetime.fromisoformat(opened["at"]).timestamp() - began)
    return waits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verify", type=int, metavar="PROBLEMS", help="prove the first so many problems valid")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if arguments.verify:
            listed = json.loads(srearena(folder, "problems", "--json").stdout)
            chosen = [problem["id"] for problem in listed][: arguments.verify]
            began = time.perf_counter()
            done = srearena(folder, "verify", *chosen, "--parallel", "2", "--json")
            seconds = time.perf_counter() - began
            proofs = [json.loads(line) for line in done.stdout.splitlines()]
            valid = sum(proof["valid"] for proof in proofs)
            print(f"{valid} of {len(chosen)} problems proven valid in {seconds:.0f} s, two at a time")
            return
        waits = first_observation(folder)
        print(f"first observation: median {statistics.median(waits):.2f} s, worst {max(waits):.2f} s of {REPEATS}")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"memory of an episode: {peak:.0f} MB")
        alone = run(folder, "alone", "--trials", str(AT_ONCE), "--parallel", "1")
        together = run(folder, "together", "--trials", str(AT_ONCE), "--parallel", str(AT_ONCE))
        gain = alone / together
        print(f"{AT_ONCE} episodes: one by one {alone:.1f} s, at once {together:.1f} s, {gain:.2f} times as fast")


if __name__ == "__main__":
    main()
