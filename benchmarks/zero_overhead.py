"""What Zero adds to an agent: wall time and memory of a run whose agent takes no time at all.

    python benchmarks/zero_overhead.py              each way of running, 9 times
    python benchmarks/zero_overhead.py --runs 3

The agent is one `sh` that writes a valid answer, so that what is measured is the harness: start of Python, workspace,
sandbox, relay, collector, validation, record. Memory is the most that any process of the harness held.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from srearena import bubblewrap

ANSWER = '{"entities": [], "propagations": [], "alerts_explained": []}'
AGENT = f"""sh -c 'printf "%s" "$1" > "$2"' agent '{ANSWER}' {{output_file}}"""
AIM_SECONDS, AIM_MEGABYTES = 1.0, 100


def snapshot(directory: Path, megabytes: int) -> Path:
    """Evidence of a size, with an answer key beside it."""
    place = directory / "Scenario-1"
    (place / "metrics").mkdir(parents=True)
    (place / "ground_truth.yaml").write_text("spec: {}\n")
    for number in range(50):
        (place / "metrics" / f"pod_{number}.tsv").write_bytes(b"x" * (megabytes * 20_000))
    return place


def measure(options: list[str], runs: int) -> tuple[float, float, float]:
    """Median seconds, median seconds of processor time, most megabytes."""
    seconds, busy, memory = [], [], 0.0
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as place:
            command = [sys.executable, "-m", "zero", "-w", f"{place}/work", "--cli", "command", "--command", AGENT]
            began = time.perf_counter()
            process = subprocess.Popen([*command, *options, "--", "exec"], stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            seconds.append(time.perf_counter() - began)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                raise SystemExit(f"the run failed with code {process.returncode}: {' '.join(options)}")
            busy.append(usage.ru_utime + usage.ru_stime)
            memory = max(memory, usage.ru_maxrss / 1024)
            subprocess.run(["chmod", "-R", "u+w", place], check=True)
    return statistics.median(seconds), statistics.median(busy), memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--megabytes", type=int, default=100, help="of evidence")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        evidence = ["-r", str(snapshot(Path(place), arguments.megabytes))]
        ways = {
            "no sandbox": ["--sandbox", "off"],
            f"no sandbox, {arguments.megabytes} MB of evidence copied": ["--sandbox", "off", *evidence],
        }
        if bubblewrap.unavailable_reason() is None:
            ways |= {
                "sandbox": ["--sandbox", "require"],
                f"sandbox, {arguments.megabytes} MB of evidence mounted, traces collected": [
                    *("--sandbox", "require", "--collect-traces"),
                    *evidence,
                ],
            }
        for name, options in ways.items():
            seconds, busy, memory = measure(options, arguments.runs)
            kept = "kept" if seconds < AIM_SECONDS and memory < AIM_MEGABYTES else "MISSED"
            print(f"{name:<60} {seconds:6.2f} s, of processor {busy:5.2f} s {memory:6.0f} MB   aim {kept}")
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
