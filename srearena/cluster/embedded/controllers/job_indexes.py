"""Sets of completion indexes, written as Jobs write them in their status: `0-2,4,6-7`."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.cluster.embedded.objects import Obj, annotations_of

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"


def parse_indexes(text: str, limit: int | None = None) -> set[int]:
    """The indexes a status names; those at or above `limit` (the job was shrunk meanwhile) do not count."""
    found: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.update(range(int(first), int(last or first) + 1))
    return found if limit is None else {index for index in found if index < limit}


def format_indexes(indexes: Iterable[int]) -> str:
    """Runs of three or more are written as a range, two neighbours as two numbers."""
    parts: list[str] = []
    run: list[int] = []

    def close() -> None:
        if len(run) > 2:
            parts.append(f"{run[0]}-{run[-1]}")
        else:
            parts.extend(str(index) for index in run)

    for index in sorted(indexes):
        if run and index != run[-1] + 1:
            close()
            run = []
        run.append(index)
    close()
    return ",".join(parts)


def index_of(pod: Obj) -> int | None:
    """The completion index of a pod; None where it has none that makes sense."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isdigit() else None


def failures_of(pod: Obj, annotation: str = FAILURE_COUNT) -> int:
    """How often its index had failed before this pod."""
    text = annotations_of(pod).get(annotation, "")
    return int(text) if text.isdigit() else 0
