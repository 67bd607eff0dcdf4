"""A process that performs one trial. The trial comes over standard input, so that no command line names the problem.

It prints one JSON object per line: `{"say": ...}` for its phases, `{"progress": ...}` with the agent's stage and usage,
and `{"result": ...}` at the end. Standard input stays open as long as the run wants the trial: at its end the trial is
stopped, so that an agent does not go on spending when the process of the run was killed. Started by `trials.workers`,
which says where `healthy` comes from.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

from srearena.conductor.episode.episode import Episode
from srearena.conductor.trials.trial import Trial, perform

STOPS = (signal.SIGINT, signal.SIGTERM)


def main(healthy: Episode | None = None) -> None:
    def stop(number: int, frame: object) -> None:
        # Ctrl-C comes from the terminal and then from the run: the second must not interrupt the cleanup.
        for each in STOPS:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in STOPS:
        signal.signal(each, stop)
    # What an agent in this process prints is no message to the parent.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    trial = Trial.from_document(json.loads(sys.stdin.readline()))
    follow_parent()

    def send(**message: Any) -> None:
        messages.write(json.dumps(message, default=str) + "\n")
        messages.flush()

    try:
        document = perform(
            trial, lambda text: send(say=text), watch=lambda progress: send(progress=progress), healthy=healthy
        )
    except KeyboardInterrupt:
        sys.exit(130)
    send(
        result={
            key: document.get(key) for key in ("problem", "trial", "outcome", "reason", "scores", "usage", "stages")
        }
    )


def follow_parent() -> None:
    """Stop this process at the end of standard input; programs that it starts get an empty one."""
    parent = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait() -> None:
        while os.read(parent, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    main()
