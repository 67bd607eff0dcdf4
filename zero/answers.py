"""Validation of the agent's output file, with complaints that the agent can act on.

The format is `itbench_evaluations.AgentOutput`. The judge is more lenient, but an agent that can be resumed is asked
for the exact format. Only the output of this run counts: `archive_stale` moves the file of an earlier run away first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from itbench_evaluations.agent_output import AgentOutput
from itbench_evaluations.submission import read_bytes
from zero.errors import RequestError

FORMS = ("diagnosis", "json", "none")
MAX_BYTES = 8_000_000  # chosen: far beyond any real diagnosis
_MAX_COMPLAINTS = 12  # per message to the agent


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of the validation; good without complaints. `readable`: the judge can parse it nevertheless."""

    complaints: tuple[str, ...] = ()
    readable: bool = True

    @property
    def good(self) -> bool:
        return not self.complaints


def checked_form(form: str) -> str:
    """The form, if it is one of `FORMS`."""
    if form not in FORMS:
        raise RequestError(f"unknown form of output {form!r}: one of {', '.join(FORMS)}")
    return form


def archive_stale(path: Path, folder: Path) -> Path | None:
    """Move the output of an earlier run away, so that it cannot count for this one."""
    if not path.exists() and not path.is_symlink():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    number = sum(1 for _ in folder.iterdir()) + 1
    return path.rename(folder / f"{number}-{path.name}")


def _schema_errors(text: str) -> list[str]:
    try:
        AgentOutput.model_validate_json(text, strict=True)
    except ValidationError as problem:
        errors = []
        for error in problem.errors(include_url=False, include_input=False):
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
            errors.append(f"{place}: {error['msg']}" if place else error["msg"])
        return errors
    return []


def examine(path: Path, form: str) -> Answer:
    """Validate the output file of this run."""
    if form == "none":
        return Answer()
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return Answer((f"{path.name} is not a regular file",), readable=False)
    if not path.exists():
        return Answer((f"the file {path} does not exist",), readable=False)
    if path.parent.resolve() != path.parent:
        return Answer((f"{path.name} is reached through a link",), readable=False)
    size = path.stat().st_size
    if size > MAX_BYTES:
        return Answer((f"{path.name} is {size:,} bytes long; the limit is {MAX_BYTES:,}",), readable=False)
    data = path.read_bytes()
    if not data.strip():
        return Answer((f"{path.name} is empty",), readable=False)
    try:
        text = data.decode("utf-8")
        json.loads(text)
    except UnicodeDecodeError as problem:
        return Answer((f"{path.name} is not UTF-8: {problem.reason} at byte {problem.start}",), _readable(data, form))
    except (ValueError, RecursionError) as problem:
        return Answer((f"{path.name} is not JSON: {problem}",), _readable(data, form))
    if form == "json":
        return Answer()
    errors = _schema_errors(text)
    if len(errors) > _MAX_COMPLAINTS:
        errors = [*errors[:_MAX_COMPLAINTS], f"and {len(errors) - _MAX_COMPLAINTS} more of the kind"]
    return Answer(tuple(errors), readable=not errors or _readable(data, form))


def _readable(data: bytes, form: str) -> bool:
    return form == "diagnosis" and read_bytes(data).readable


_CONTRACT = (
    'It must be one JSON object: {"entities": [{"name": "namespace/Kind/name", "contributing_factor": true or false, '
    '"reasoning": "...", "evidence": "..."}], "propagations": [{"source": "...", "target": "...", "condition": "...", '
    '"effect": "..."}], "alerts_explained": [{"alert": "...", "explanation": "...", "explained": true or false}]}. '
    "All three lists must be there."
)


def retry_message(answer: Answer, path: Path, form: str) -> str:
    """The message with which the agent is resumed."""
    listed = "\n".join(f"- {complaint}" for complaint in answer.complaints)
    if form == "none":
        return f"You are not done yet:\n{listed}\nGo on, and stop only when all of it is done."
    contract = f"\n{_CONTRACT}" if form == "diagnosis" else ""
    return f"Your output cannot be accepted:\n{listed}\nWrite the complete result to {path} now.{contract}"
