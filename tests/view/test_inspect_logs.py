"""Logs of Inspect among the viewed trials: one that Inspect has written, and others of any content."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from srearena.view.catalog import Catalog, viewed_folders
from srearena.view.inspect_logs import inspect_trials
from tests.view.pages import Pages
from tests.view.results import HOSTILE

WRITTEN = Path(__file__).parent / "fixtures"
"""`incidents.eval` is the log of the example in docs/inspect.md, written by Inspect 0.3.285."""

SUMMARY = {"id": "one", "epoch": 1, "scores": {"accuracy": {"value": "I", "explanation": HOSTILE}}}
SAMPLE = {
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": HOSTILE}]},
        {
            "id": "m1",
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "I think."}, {"type": "text", "text": "I look."}],
            "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "", "error": {"type": "timeout", "message": "too slow"}},
        {"role": "assistant", "content": "I give up."},
    ],
    "events": [
        {
            "event": "model",
            "output": {"choices": [{"message": {"id": "m1"}}], "usage": {"input_tokens": 7, "output_tokens": 3}},
        },
        {"event": "tool", "id": "c1", "timestamp": "2026-01-01T00:00:00+00:00", "working_time": 2.5},
    ],
    "error": {"message": "the sandbox is gone", "traceback": "Traceback"},
}


def write_log(folder: Path, **documents: Any) -> Path:
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "task.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, document in documents.items():
            archive.writestr(name.replace("__", "/") + ".json", json.dumps(document))
    return folder / "task.eval"


def test_a_log_that_inspect_has_written_is_read() -> None:
    (trial,) = inspect_trials(WRITTEN, "0")
    row = trial.row()
    assert (row.source, row.problem, row.outcome) == ("inspect", "scale_pod_zero_social_net", "pass")
    assert (row.model, row.stages, row.score, row.steps) == ("mockllm/model", [("detection", True)], 1.0, 2)
    steps = trial.steps()
    assert [(step.kind, step.title.partition("(")[0]) for step in steps[1:]] == [
        ("tool", "get_alerts"),
        ("submission", "submit"),
    ]
    assert "RequestsStopped" in steps[1].answer and steps[1].seconds is not None
    result = trial.result()
    assert result["ground_truth"]["roots"] == ["social-network/Deployment/user-service"]
    assert result["stages"][0]["verdict"]["passed"]


def test_tasks_of_others_have_thoughts_usage_and_errors(tmp_path: Path) -> None:
    header = {"eval": {"task": "their task", "model": "their/model", "created": "2026-01-02T03:04:05+00:00"}}
    write_log(tmp_path, header=header, summaries=[SUMMARY], samples__one_epoch_1=SAMPLE)
    (trial,) = inspect_trials(tmp_path, "0")
    row = trial.row()
    assert (row.run, row.problem, row.outcome) == ("their task 2026-01-02T03:04", "one", "fail")
    task, call, last, end = trial.steps()
    assert task.answer == HOSTILE
    assert (call.title, call.answer, call.failed, call.seconds) == ('bash(cmd="ls")', "too slow", True, 2.5)
    assert (call.thought, call.tokens_in, call.tokens_out) == ("I think.\n\nI look.", 7, 3)
    assert (last.kind, last.title, end.title) == ("message", "I give up.", "the sandbox is gone")


def test_a_log_is_followed_while_it_is_written(tmp_path: Path) -> None:
    start = {"eval": {"task": "running", "model": "a/b"}}
    catalog = Catalog([tmp_path])
    write_log(tmp_path, _journal__start=start)
    assert catalog.rows() == []
    write_log(tmp_path, _journal__start=start, _journal__summaries__1=[SUMMARY])
    assert [(row.run, row.problem) for row in catalog.rows()] == [("running", "one")]


@pytest.mark.parametrize(
    "documents",
    [
        {},
        {"summaries": {"no": "list"}},
        {"summaries": [3, None, {"id": {"deep": []}, "scores": 7, "metadata": [], "model_usage": {"m": 2}}]},
        {"header": [], "summaries": [{**SUMMARY, "scores": {"a": None}, "error": 5}]},
    ],
)
def test_damaged_logs_are_no_errors(tmp_path: Path, documents: dict[str, Any]) -> None:
    write_log(tmp_path, **documents)
    (tmp_path / "no-archive.eval").write_text("PK")
    for trial in inspect_trials(tmp_path, "0"):
        trial.document()


def test_samples_are_listed_and_opened_in_the_page(tmp_path: Path, served: Callable[[Path], Pages]) -> None:
    shutil.copy(WRITTEN / "incidents.eval", tmp_path)
    assert viewed_folders([str(tmp_path / "incidents.eval")]) == [tmp_path / "incidents.eval"]
    pages = served(tmp_path)
    pages.open("", "#trials td.text a")
    assert "incidents 2026-11-19" in pages.text("#trials")
    pages.find("#trials td.text a").click()
    pages.wait(lambda: pages.all("#transcript .step"))
    assert pages.all("#verdicts tbody th") == ["detection"]
    assert "get_alerts()" in pages.text("#transcript")
    assert pages.errors() == []
