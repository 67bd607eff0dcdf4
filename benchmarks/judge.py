"""How quick the judge is: 10,000 trials by rule, and a panel's wall time against a judge that takes its time.

    python benchmarks/judge.py                   both, on answer keys of our own making
    python benchmarks/judge.py --trials 2000     smaller
    python benchmarks/judge.py --ground-truth DIR

The first run uses the command itself in a process of its own, reading and writing files as a user's run does.
The second asks a local endpoint that answers correctly after a fixed delay, at several `--max-concurrent`.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from itbench_evaluations import TruthView, load_truths, reference_answer


def make_truths(directory: Path, incidents: int) -> None:
    """Answer keys of the usual size: a root, a workload in three objects, a chain of five services."""
    names = (
        "cart",
        "checkout",
        "payment",
        "shipping",
        "frontend",
        "ad",
        "quote",
        "email",
        "currency",
        "recommendation",
    )
    for number in range(1, incidents + 1):
        rng = random.Random(number)
        chain = rng.sample(names, 5)
        groups: list[dict[str, Any]] = [
            {"id": "settings", "kind": "ConfigMap", "namespace": "shop", "name": "settings", "root_cause": True}
        ]
        edges = []
        before = "settings"
        for name in chain:
            groups.append({"id": f"{name}-pod", "kind": "Pod", "namespace": "shop", "filter": [f"{name}-.*"]})
            groups.append({"id": f"{name}-svc", "kind": "Service", "namespace": "shop", "filter": [f"{name}\\b"]})
            edges.append(
                {
                    "source": before,
                    "target": f"{name}-pod",
                    "condition": "a slow setting is read",
                    "effect": f"{name} returns errors",
                }
            )
            edges.append(
                {
                    "source": f"{name}-pod",
                    "target": f"{name}-svc",
                    "condition": "its pods are slow",
                    "effect": "error rate high",
                }
            )
            before = f"{name}-svc"
        document = {
            "groups": groups,
            "aliases": [[f"{name}-pod", f"{name}-svc"] for name in chain],
            "propagations": edges,
            "fault": [{"condition": "flag slowdown switched on", "entity": {"group_id": "settings"}}],
        }
        place = directory / f"Scenario-{number}"
        place.mkdir(parents=True)
        (place / "ground_truth.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


def make_outputs(truths: Path, outputs: Path, trials: int) -> int:
    """Answers of every quality: the reference, parts of it, wrong blame, broken JSON, nothing."""
    views = [TruthView.of(truth) for truth in load_truths(truths).truths.values()]
    rng = random.Random(7)
    for index in range(trials):
        view = views[index % len(views)]
        answer = json.loads(reference_answer(view).model_dump_json())
        for entity in answer["entities"]:
            entity["contributing_factor"] = entity["contributing_factor"] != (rng.random() < 0.2)
        answer["propagations"] = [edge for edge in answer["propagations"] if rng.random() < 0.8]
        answer["entities"].append(
            {"name": f"shop/Pod/extra-{rng.randrange(10**6):x}-abcde", "contributing_factor": rng.random() < 0.3}
        )
        text = json.dumps(answer)
        if rng.random() < 0.05:
            text = "```json\n" + text[: rng.randrange(len(text))]
        place = outputs / f"Scenario-{view.truth.incident_id}" / str(index // len(views) + 1)
        place.mkdir(parents=True)
        if rng.random() > 0.01:
            (place / "agent_output.json").write_text(text, encoding="utf-8")
    return len(views)


def by_rule(truths: Path, trials: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        outputs, result = Path(scratch) / "outputs", Path(scratch) / "result.json"
        incidents = make_outputs(truths, outputs, trials)
        started = time.perf_counter()
        command = [sys.executable, "-m", "itbench_evaluations", "--judge", "none"]
        subprocess.run(
            [*command, "-g", str(truths), "-o", str(outputs), "-r", str(result)], check=True, stdout=subprocess.DEVNULL
        )
        took = time.perf_counter() - started
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        size = result.stat().st_size / 2**20
        overall = json.loads(result.read_text(encoding="utf-8"))["statistics"]["overall"]
    print(
        f"by rule: {overall['total_trials']} trials of {incidents} incidents in {took:.1f} s "
        f"({1000 * took / trials:.2f} ms each), {memory:.0f} MB, result {size:.0f} MB, "
        f"{overall['total_bad_runs']} bad runs counted"
    )


class _Judge(BaseHTTPRequestHandler):
    """Answers correctly after a delay: 1 where the explanation has the key's own words, else 0."""

    delay = 0.2
    under_way = 0
    most = 0
    lock = threading.Lock()
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # headers and body in one packet, or delayed acknowledgements add 40 ms to each reply

    def do_POST(self) -> None:
        kind = type(self)
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with kind.lock:
            kind.under_way += 1
            kind.most = max(kind.most, kind.under_way)
        time.sleep(kind.delay)
        user = body["messages"][1]["content"]
        items = json.loads(user[user.index("\n[") : user.rindex("]\n") + 1])
        verdicts = [
            {
                "id": item["id"],
                "quote": "",
                "why": "",
                "score": int(any(statement.rstrip(". ") in item["explanation"] for statement in item["key"])),
            }
            for item in items
        ]
        reply = {
            "choices": [{"message": {"content": json.dumps({"verdicts": verdicts})}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 60},
        }
        data = json.dumps(reply).encode()
        with kind.lock:
            kind.under_way -= 1
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        return


def with_judge(truths: Path, trials: int) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Judge)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/v1"
    for concurrent in (1, 4, 16):
        _Judge.most = 0
        with tempfile.TemporaryDirectory() as scratch:
            outputs, result = Path(scratch) / "outputs", Path(scratch) / "result.json"
            make_outputs(truths, outputs, trials)
            # Every explanation differs, so that every trial costs a request.
            for number, file in enumerate(sorted(outputs.rglob("agent_output.json"))):
                file.write_text(file.read_text(encoding="utf-8").replace("switched on", f"switched on {number}"))
            started = time.perf_counter()
            command = [sys.executable, "-m", "itbench_evaluations", "--judge", "llm", "--judge-model", "local"]
            subprocess.run(
                [
                    *command,
                    "-g",
                    str(truths),
                    "-o",
                    str(outputs),
                    "-r",
                    str(result),
                    "--max-concurrent",
                    str(concurrent),
                ],
                env={"JUDGE_BASE_URL": address, "PATH": "/usr/bin:/bin"},
                check=True,
                stdout=subprocess.DEVNULL,
            )
            took = time.perf_counter() - started
            usage = json.loads(result.read_text(encoding="utf-8"))["judge"]["usage"]
        least = usage["requests"] * _Judge.delay / concurrent
        print(
            f"with a judge of {_Judge.delay:g} s: {usage['requests']} requests, --max-concurrent {concurrent}: "
            f"{took:.1f} s (the judge alone needs {least:.1f} s), at most {_Judge.most} at once"
        )
    server.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--judged", type=int, default=100)
    parser.add_argument("--incidents", type=int, default=100)
    parser.add_argument("--ground-truth", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        truths = args.ground_truth or Path(scratch)
        if args.ground_truth is None:
            make_truths(truths, args.incidents)
        by_rule(truths, args.trials)
        own = Path(scratch) / "own"
        make_truths(own, 20)
        with_judge(own, args.judged)


if __name__ == "__main__":
    main()
