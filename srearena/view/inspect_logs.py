"""Logs of Inspect (`*.eval`): the samples of a task as trials, those of our own tasks with their verdicts.

An `.eval` file is a zip archive of JSON documents, compressed with Zstandard in current versions, which Python's own
`zipfile` reads from 3.14 on and DuckDB in all. A log is read as untrusted: fields may have any type, sizes are bounded.
"""

from __future__ import annotations

import json
import shutil
import struct
import zipfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from srearena.temporary import make_folder
from srearena.view.transcript import Step, title_of
from srearena.view.trials import Row, ViewedTrial, listed, mapping, modified, number, readable, stage_marks, text

INSPECT = "inspect"
_ZSTANDARD = 93
_LARGEST = 64_000_000
"""Bytes of one document; a sample of 2,000 steps has a tenth of it."""
_MOST_MEMBERS = 20_000
_HEADER = struct.Struct("<HH")
_BROKEN = (OSError, ValueError, KeyError, RecursionError, zipfile.BadZipFile, NotImplementedError)


class InspectLog:
    """One log file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def document(self, name: str) -> Any:
        """A JSON document of the archive; None where it is not there or cannot be read."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                member = archive.getinfo(name)
                if max(member.file_size, member.compress_size) > _LARGEST:
                    return None
                if member.compress_type == _ZSTANDARD:
                    return json.loads(_zstandard(self.path, member))
                return json.loads(archive.read(member))
        except _BROKEN:
            return None

    @cached_property
    def names(self) -> list[str]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                return archive.namelist()[:_MOST_MEMBERS]
        except _BROKEN:
            return []

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the evaluation was of: task, model; from the journal while it runs."""
        document = self.document("header.json" if "header.json" in self.names else "_journal/start.json")
        return mapping(mapping(document).get("eval"))

    @cached_property
    def summaries(self) -> list[dict[str, Any]]:
        """One summary for each sample that has ended."""
        if "summaries.json" in self.names:
            return [mapping(one) for one in listed(self.document("summaries.json"))]
        parts = [name for name in self.names if name.startswith("_journal/summaries/")]
        return [mapping(one) for name in parts for one in listed(self.document(name))]


def _zstandard(path: Path, member: zipfile.ZipInfo) -> str:
    import duckdb  # needs a tenth of a second, and most views have no such log

    with path.open("rb") as file:
        file.seek(member.header_offset + 26)  # the local header ends with the lengths of name and extra field
        name, extra = _HEADER.unpack(file.read(_HEADER.size))
        file.seek(name + extra, 1)
        compressed = file.read(member.compress_size)
    query = (
        "SELECT json FROM read_json_objects(?, format='unstructured', compression='zstd', "
        f"maximum_object_size={_LARGEST})"
    )
    folder = make_folder("view")
    try:
        (folder / "document.json.zst").write_bytes(compressed)
        with duckdb.connect() as database:
            row = database.execute(query, [str(folder / "document.json.zst")]).fetchone()
    except duckdb.Error as problem:
        raise ValueError(f"{path.name}: {member.filename} cannot be read") from problem
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return str(row[0]) if row else "null"


class InspectTrial(ViewedTrial):
    """One sample of a log."""

    def __init__(self, prefix: str, log: InspectLog, summary: Mapping[str, Any], stamp: tuple[int, ...]) -> None:
        self._log = log
        self._summary = summary
        self._sample = f"{summary.get('id')}_epoch_{summary.get('epoch')}"
        super().__init__(f"{prefix}/{log.path.stem}/{self._sample}", log.path.parent, stamp)

    def row(self) -> Row:
        facts, summary = self._log.facts, self._summary
        metadata, score = mapping(summary.get("metadata")), self._score()
        ours = mapping(score.get("metadata"))
        run = text(facts.get("task_display_name")) or text(facts.get("task")) or self._log.path.stem
        row = Row(
            self.id,
            INSPECT,
            f"{run} {text(facts.get('created'))[:16]}".strip(),
            text(metadata.get("problem")) or str(summary.get("id")),
            text(facts.get("solver")) or "inspect",
            self._outcome(score, ours),
            trial=int(number(metadata.get("seed")) or 0),
            model=text(facts.get("model")),
            family=text(ours.get("level")),
            application=text(ours.get("application")),
        )
        row.reason = text(summary.get("error")) or (text(score.get("explanation")) if row.outcome != "pass" else "")
        row.stages = stage_marks(ours) or [
            (name, number(one) == 1.0) for name, one in mapping(ours.get("scores")).items()
        ]
        row.score = number(mapping(score.get("value")).get("reward"))
        row.score = number(score.get("value")) if row.score is None else row.score
        row.steps = int(number(summary.get("turn_count")) or 0) or None
        usage = [mapping(one) for one in mapping(summary.get("model_usage")).values()]
        row.tokens = sum(int(number(one.get("total_tokens")) or 0) for one in usage)
        costs = [cost for one in usage if (cost := number(one.get("total_cost"))) is not None]
        row.cost = sum(costs) if costs else None
        row.seconds = number(summary.get("total_time"))
        row.at = text(summary.get("completed_at"))[:19] or modified(self._log.path)
        return row

    def _score(self) -> dict[str, Any]:
        """Of our own scorer, else of the first."""
        scores = {name: mapping(score) for name, score in mapping(self._summary.get("scores")).items()}
        return scores.get("oracles") or next(iter(scores.values()), {})

    def _outcome(self, score: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
        if self._summary.get("error"):
            return "error"
        value = score.get("value")
        if value in ("C", "I"):  # Inspect's marks of what is correct or not
            return "pass" if value == "C" else "fail"
        return text(ours.get("outcome")) or ("scored" if score else "not scored")

    def steps(self) -> list[Step]:
        return list(_steps(mapping(self._log.document(f"samples/{self._sample}.json"))))

    def result(self) -> dict[str, Any]:
        score = self._score()
        ours, value = mapping(score.get("metadata")), score.get("value")
        kept = ("stages", "collateral", "usage", "ground_truth", "isolation")
        values = mapping(value) or ({"score": value} if value is not None else {})
        scores = {name: one for name, raw in values.items() if (one := number(raw)) is not None}
        return {**{key: ours[key] for key in kept if key in ours}, "scores": scores}


def inspect_trials(folder: Path, prefix: str) -> Iterator[InspectTrial]:
    """The samples of all logs in a folder, or of one log."""
    for path in log_files(folder):
        log = InspectLog(path)
        status = path.stat()
        for summary in log.summaries:
            if summary.get("id") is not None:
                yield InspectTrial(prefix, log, summary, (status.st_mtime_ns, status.st_size))


def log_files(place: Path) -> list[Path]:
    """The logs of a folder of logs, or the one log that is named."""
    try:
        found = [place] if place.suffix == ".eval" else sorted(place.glob("*.eval"))
    except OSError:
        return []
    return [path for path in found if readable(path)]


def _steps(sample: Mapping[str, Any]) -> Iterator[Step]:
    """The transcript: the task, then each tool call with its answer, thought and usage."""
    calls = {text(event.get("id")): event for event in _events(sample, "tool")}
    models = {_message_id(event): event for event in _events(sample, "model")}
    answers = {
        text(message.get("tool_call_id")): message for message in _messages(sample) if message.get("role") == "tool"
    }
    for message in _messages(sample):
        role, words = message.get("role"), _content(message.get("content"))
        if role in ("user", "system"):
            yield Step("message", title_of(words), answer=words)
        elif role == "assistant":
            steps = [
                _tool_step(call, answers.get(text(call.get("id")), {}), calls.get(text(call.get("id")), {}))
                for call in map(mapping, listed(message.get("tool_calls")))
            ] or [Step("message", title_of(words), answer=words)]
            model = models.get(text(message.get("id")), {})
            usage = mapping(mapping(model.get("output")).get("usage"))
            steps[0].thought = words if steps[0].kind == "tool" else ""
            steps[0].tokens_in = int(number(usage.get("input_tokens")) or 0)
            steps[0].tokens_out = int(number(usage.get("output_tokens")) or 0)
            steps[0].cost = number(usage.get("total_cost"))
            steps[0].at = steps[0].at or text(model.get("timestamp"))
            yield from steps
    error = mapping(sample.get("error"))
    if error:
        yield Step("end", title_of(text(error.get("message"))), answer=text(error.get("traceback")), failed=True)


def _tool_step(call: Mapping[str, Any], answer: Mapping[str, Any], event: Mapping[str, Any]) -> Step:
    name, arguments = text(call.get("function")), mapping(call.get("arguments"))
    shown = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in arguments.items())
    command = f"{name}({shown})"
    failed = mapping(answer.get("error"))
    replied = _content(answer.get("content")) or text(failed.get("message"))
    step = Step("submission" if name == "submit" else "tool", title_of(command), command=command, answer=replied)
    step.at, step.seconds = text(event.get("timestamp")), number(event.get("working_time"))
    step.failed = bool(failed) or replied.startswith("Error:")
    return step


def _events(sample: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [event for event in map(mapping, listed(sample.get("events"))) if event.get("event") == kind]


def _messages(sample: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [mapping(message) for message in listed(sample.get("messages"))]


def _message_id(event: Mapping[str, Any]) -> str:
    choices = listed(mapping(event.get("output")).get("choices"))
    return text(mapping(mapping(choices[0]).get("message")).get("id")) if choices else ""


def _content(content: Any) -> str:
    """The text of a message: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    parts = [mapping(part) for part in listed(content)]
    return "\n\n".join(found for part in parts if (found := text(part.get("text")) or text(part.get("reasoning"))))
