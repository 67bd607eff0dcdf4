"""A process that performs one trial: its specification comes over standard input, so that no command line names it.

It prints one JSON object per line: `{"say": ...}` while it works, and `{"result": ...}` at the end.
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

    def tell(**what: Any) -> None:
        print(json.dumps(what, default=str), flush=True)

    try:
        document = perform(trial, lambda text: tell(say=text))
    except KeyboardInterrupt:
        sys.exit(130)
    tell(
        result={
            key: document.get(key) for key in ("problem", "trial", "outcome", "reason", "scores", "usage", "stages")
        }
    )


if __name__ == "__main__":
    main()
