"""A process that performs one trial. The trial comes over standard input, so that no command line names the problem.

It prints one JSON object per line: `{"say": ...}` for progress, and `{"result": ...}` at the end.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from srearena.conductor.trials.trial import Trial, perform


def main() -> None:
    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    trial = Trial.from_document(json.loads(sys.stdin.readline()))

    def send(**message: Any) -> None:
        print(json.dumps(message, default=str), flush=True)

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
