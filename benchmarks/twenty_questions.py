"""Ask healthy applications what a careful engineer asks: are data, metrics, traces and logs of one world?

    python -m benchmarks.twenty_questions [APP ...] [--seeds 3] [--minutes 60]

Every application is brought up with each seed and lives for the time under its usual load; then all questions are
asked. Prints the doubts, and ends with 1 where there are any.
"""

from __future__ import annotations

import argparse
import sys
import time

from benchmarks.questions import common, stores
from benchmarks.questions.engineer import Doubt, Engineer, Question
from srearena.cluster import start_embedded
from srearena.service.apps import find_application
from srearena.service.kubernetes import Kubernetes


def questions_for(name: str) -> tuple[Question, ...]:
    """The questions about an application; those that wait come last."""
    return (*common.QUESTIONS, *stores.QUESTIONS[name])


def ask(engineer: Engineer, questions: tuple[Question, ...]) -> dict[str, str]:
    """Ask; the doubts by question."""
    doubts = {}
    for question in questions:
        try:
            question(engineer)
        except Doubt as doubt:
            doubts[str(question.__doc__)] = str(doubt)
    return doubts


def play(name: str, seed: int, minutes: int) -> tuple[int, dict[str, str]]:
    """Bring an application up, let it live, and ask; the number of questions, and the doubts."""
    application = find_application(name)
    start = time.time() - 60 * minutes - 3600
    with (
        start_embedded(models=[application.folder], in_process=True, seed=seed, speed=0, start=start) as cluster,
        Kubernetes.of(cluster) as api,
    ):
        application.deploy(cluster)
        application.wait_until_ready(cluster)
        application.start_workload(cluster)
        cluster.wait(60 * minutes + 90)
        engineer = Engineer(cluster, api, application, minutes)
        try:
            questions = questions_for(name)
            return len(questions), ask(engineer, questions)
        finally:
            engineer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("applications", nargs="*", default=list(stores.QUESTIONS))
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds, from 1 on")
    parser.add_argument("--minutes", type=int, default=60, help="virtual minutes under load")
    options = parser.parse_args()
    failed = 0
    for name in options.applications:
        for seed in range(1, options.seeds + 1):
            began = time.process_time()
            number, doubts = play(name, seed, options.minutes)
            failed += len(doubts)
            used = time.process_time() - began
            print(f"{name:<30}seed {seed}: {number - len(doubts)} of {number} questions, {used:.1f} s", flush=True)
            for question, doubt in doubts.items():
                print(f"    {question} {doubt}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
