"""A process that proves one problem: a document on standard input, the proof on standard output, each one line of JSON.

Started by `trials.workers`, which says where `healthy` comes from.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from srearena.conductor.episode.episode import Episode
from srearena.conductor.validity.verification import run_twice, verify
from srearena.config import Config


def request(problem: str, seed: int, config: Config, *, runs: bool = False, battery: bool = False) -> dict[str, Any]:
    """The document of a proof: `runs` for two trials only, `battery` for all cheats and honest repairs as well."""
    return {"problem": problem, "seed": seed, "config": config.model_dump(), "runs": runs, "battery": battery}


def perform(document: Mapping[str, Any], healthy: Episode | None = None) -> dict[str, Any]:
    """The proof that a document asks for."""
    problem, seed, config = document["problem"], document["seed"], Config(**document["config"])
    if document["runs"]:
        return run_twice(problem, seed, config, healthy)
    return verify(problem, seed, config, document["battery"], healthy)


def main(healthy: Episode | None = None) -> None:
    def stop(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    proof = perform(json.loads(sys.stdin.readline()), healthy)
    messages.write(json.dumps(proof, default=str) + "\n")
    messages.flush()


if __name__ == "__main__":
    main()
