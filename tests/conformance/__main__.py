"""`python -m tests.conformance run [--focus REGEX] [--others] | table RESULTS [--others] | names`."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from srearena.errors import SreArenaError
from tests.conformance import others
from tests.conformance.building import NotBuilt, compiled

VERSION = "v1.34.1"
HERE = Path(__file__).parent
NAMES = HERE / "names.txt"
SUITE = HERE / "suite"
PAGE = HERE.parents[1] / "docs" / "fidelity.md"
BEGIN, END = "<!-- conformance: begin (python -m tests.conformance table) -->", "<!-- conformance: end -->"
OTHERS_BEGIN, OTHERS_END = "<!-- others: begin (python -m tests.conformance table --others) -->", "<!-- others: end -->"
CACHE = Path(os.environ.get("SREARENA_CONFORMANCE_CACHE", "~/.cache/srearena/conformance")).expanduser()
PER_PROCESS = 4
"""Tests that one process runs: each process discovers the API and waits for nodes first."""
SECONDS = 1200
"""The limit of one process; its longest test (pages of a list that expire) takes ten minutes."""
Result = dict[str, Any]


class ConformanceError(SreArenaError):
    """The tests cannot be run."""


def build(cache: Path) -> tuple[Path, Path]:
    """Compile the tests and kubectl, once, into the cache."""
    major, minor, _ = VERSION.lstrip("v").split(".")
    values = {"gitVersion": VERSION, "gitMajor": major, "gitMinor": minor}
    flags = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())
    tests, kubectl = "k8s.io/kubernetes/test/e2e", "k8s.io/kubernetes/cmd/kubectl"
    return (
        compiled(SUITE, cache, f"e2e.test-{VERSION}", tests, command=("test", "-c", "-vet=off"), flags=flags),
        compiled(SUITE, cache, f"kubectl-{VERSION}", kubectl, command=("build",), flags=flags),
    )


class Cluster:
    """An embedded cluster in a process of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.kubeconfig = folder / f"{name}.kubeconfig"

    def _srearena(self, *words: str) -> None:
        command = [sys.executable, "-m", "srearena", "cluster", *words]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ConformanceError(f"srearena cluster {words[0]} failed: {done.stderr.strip()}")

    def __enter__(self) -> Cluster:
        self._srearena("up", "--name", self.name, "--detach", "--kubeconfig", str(self.kubeconfig), "--json")
        return self

    def __exit__(self, *_: object) -> None:
        self._srearena("down", self.name)


def run_some(number: int, names: list[str], cluster: Cluster, programs: tuple[Path, Path], out: Path) -> list[Result]:
    """Run a few tests in one process; those that it did not come to are missing in the result."""
    report, log = out / f"{number:03d}.json", out / f"{number:03d}.log"
    command = [
        str(programs[0]),
        "--provider=skeleton",
        f"--kubeconfig={cluster.kubeconfig}",
        f"--kubectl-path={programs[1]}",
        "--ginkgo.no-color",
        "--ginkgo.silence-skips",
        f"--ginkgo.timeout={SECONDS}s",
        f"--ginkgo.json-report={report}",
        "--ginkgo.output-interceptor-mode=none",
        *(f"--ginkgo.focus={re.escape(name)}$" for name in names),
    ]
    with log.open("w") as output:
        try:
            subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=SECONDS + 120, cwd=out)
        except subprocess.TimeoutExpired:
            return []
    if not report.exists():
        return []
    found = []
    for spec in json.loads(report.read_text())[0]["SpecReports"]:
        name = others.name_of(spec)
        message = spec.get("Failure", {}).get("Message", "")
        # A test that was not chosen is skipped without a message; with one it found that it does not apply.
        chosen = name in names and (spec["State"] not in ("skipped", "pending") or message)
        if spec["LeafNodeType"] == "It" and chosen:
            seconds = round(spec["RunTime"] / 1e9, 1)
            found.append({"name": name, "state": spec["State"], "seconds": seconds, "message": message})
    return found


class Run:
    """A run: which tests are left, and what became of the others, which is on disk as soon as it is known."""

    def __init__(self, names: list[str], out: Path) -> None:
        self.names = names
        self.results = {result["name"]: result for result in kept_results(out) if result["state"] == "passed"}
        self._out = out
        self._lock = threading.Lock()
        self._numbers = itertools.count(len(list(out.glob("*.log"))))
        self._work: Queue[list[str]] = Queue()
        left = [name for name in names if name not in self.results]
        for first in range(0, len(left), PER_PROCESS):
            self._work.put(left[first : first + PER_PROCESS])
        self.groups = self._work.qsize()

    def serve(self, cluster: Cluster, programs: tuple[Path, Path]) -> None:
        """Run tests on a cluster until none are left."""
        while True:
            try:
                some = self._work.get_nowait()
            except Empty:
                return
            with self._lock:
                number = next(self._numbers)
            found = run_some(number, some, cluster, programs, self._out)
            self._keep(found)
            missing = [name for name in some if name not in {result["name"] for result in found}]
            if missing and len(some) > 1:
                # A process that ended early: each of the others gets one of its own.
                for name in missing:
                    self._work.put([name])

    def _keep(self, found: list[Result]) -> None:
        with self._lock, (self._out / "results.jsonl").open("a") as results:
            self.results.update({result["name"]: result for result in found})
            results.writelines(json.dumps(result) + "\n" for result in found)
            print(f"{len(self.results)} of {len(self.names)}")
            for result in found:
                if result["state"] not in ("passed", "skipped"):
                    print(f"failed: {result['name']}: {result['message'][:200]}")
            sys.stdout.flush()

    @property
    def skipped(self) -> int:
        """How many tests found that they do not apply to the cluster."""
        return sum(result["state"] == "skipped" for result in self.results.values())

    def finish(self) -> int:
        """Write the results in the order of the tests; the number of those that passed."""
        unknown = {"state": "not run", "seconds": 0.0, "message": ""}
        lines = [self.results.get(name, {"name": name, **unknown}) for name in self.names]
        (self._out / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return sum(line["state"] == "passed" for line in lines)


def kept_results(out: Path) -> list[Result]:
    """What an earlier run left in a folder."""
    results = out / "results.jsonl"
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def run(focus: str, workers: int, cache: Path, out: Path, source: Path = NAMES) -> int:
    """Run the tests whose name matches, and write what became of each to results.jsonl."""
    names = [name for name in source.read_text().splitlines() if re.search(focus, name)]
    if not names:
        raise ConformanceError(f"no conformance test matches {focus!r}; their names are in {source}")
    programs = build(cache)
    out.mkdir(parents=True, exist_ok=True)
    running = Run(names, out)

    def serve(worker: int) -> None:
        with Cluster(f"conformance-{os.getpid()}-{worker}", out) as cluster:
            running.serve(cluster, programs)

    threads = [threading.Thread(target=serve, args=(worker,)) for worker in range(min(workers, running.groups))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed, skipped = running.finish(), running.skipped
    print(f"{passed} of {len(names)} passed, {skipped} do not apply; see {out / 'results.jsonl'}")
    return 0 if passed + skipped == len(names) else 1


def table(results: Path, source: Path = NAMES, begin: str = BEGIN, end: str = END) -> None:
    """Write the table by SIG into docs/fidelity.md; only a run of all tests counts."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    if {line["name"] for line in lines} != set(source.read_text().splitlines()):
        raise ConformanceError(f"{results} is not of a run of all conformance tests")
    totals, passed = Counter[str](), Counter[str]()
    for line in lines:
        found = re.search(r"\[sig-([a-z-]+)\]", line["name"])
        sig = found[1] if found else "other"
        totals[sig] += line["state"] != "skipped"
        passed[sig] += line["state"] == "passed"
    rows = [f"| {sig} | {passed[sig]} | {totals[sig]} |" for sig in sorted(totals)]
    rows.append(f"| **all** | **{passed.total()}** | **{totals.total()}** |")
    text = "\n".join(["| SIG | passed | tests |", "| --- | --- | --- |", *rows])
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise ConformanceError(f"{PAGE} has no place for the table ({begin})")
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def write_names(cache: Path) -> None:
    """Write the list of tests outside [Conformance], and print why how many are not in it."""
    program, _ = build(cache)
    for reason, number in others.write_names(others.all_names(program, cache)).most_common():
        print(f"{number:6} {reason or 'are run'}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance", description=sys.modules["tests.conformance"].__doc__
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="build what is missing and run tests")
    running.add_argument("--focus", default="", help="a regular expression for names; without it all tests run")
    running.add_argument("--others", action="store_true", help="tests outside [Conformance] (others.txt) instead")
    running.add_argument("--workers", type=int, default=6, help="clusters at a time")
    running.add_argument("--cache", type=Path, default=CACHE, help="where the compiled tests are kept")
    running.add_argument(
        "--out",
        type=Path,
        help="folder of results and logs, a new one in the cache by default; what passed there is not run again",
    )
    writing = commands.add_parser("table", help="write the table in docs/fidelity.md")
    writing.add_argument("results", type=Path, help="the results.jsonl of a run of all tests")
    writing.add_argument("--others", action="store_true", help="of the tests outside [Conformance]")
    naming = commands.add_parser("names", help="write the list of tests outside [Conformance] anew (others.txt)")
    naming.add_argument("--cache", type=Path, default=CACHE, help="where the compiled tests are kept")
    options = parser.parse_args(arguments)
    try:
        if options.command == "table":
            places = (others.NAMES, OTHERS_BEGIN, OTHERS_END) if options.others else (NAMES, BEGIN, END)
            table(options.results, *places)
            return 0
        if options.command == "names":
            write_names(options.cache.resolve())
            return 0
        cache = options.cache.resolve()
        source = others.NAMES if options.others else NAMES
        return run(options.focus, options.workers, cache, options.out or cache / f"run-{int(time.time())}", source)
    except (ConformanceError, NotBuilt) as problem:
        print(f"conformance: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
