"""A process that performs one trial. The trial comes over standard input, so that no command line names the problem.

It prints one JSON object per line: `{"say": ...}` for progress, and `{"result": ...}` at the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from srearena.conductor.trials.trial import Trial, perform


def main() -> None:
    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    # What an agent in this process prints is no message to the parent.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    trial = Trial.from_document(json.loads(sys.stdin.readline()))

    def send(**message: Any) -> None:
        messages.write(json.dumps(message, default=str) + "\n")
        messages.flush()

    try:
        document = perform(trial, lambda text: send(say=text))
    except KeyboardInterrupt:
        sys.exit(130)
    send(
        result={
            key: document.get(key) for key in ("problem", "trial", "outcome", "reason", "scores", "usage", "stages")
        }
    )


if __name__ == "__main__":
    main()
