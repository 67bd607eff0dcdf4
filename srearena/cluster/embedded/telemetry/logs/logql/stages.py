"""Compiled pipelines: first the filters that need only bytes, then the steps for each line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.logs.logql.errors import StageProblem
from srearena.cluster.embedded.telemetry.logs.logql.extraction import parser
from srearena.cluster.embedded.telemetry.logs.logql.label_filters import label_step
from srearena.cluster.embedded.telemetry.logs.logql.line_filters import Test, test
from srearena.cluster.embedded.telemetry.logs.logql.lines import ERROR, ERROR_DETAILS, Line
from srearena.cluster.embedded.telemetry.logs.logql.syntax import (
    Choose,
    Decolorize,
    LabelFormat,
    LineFilter,
    LineFormat,
    Parse,
    PipelineStage,
)
from srearena.cluster.embedded.telemetry.logs.logql.template_functions import FUNCTIONS, Moment
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.cluster.embedded.telemetry.templates import Function, Template, TemplateError

Step = Callable[[Line], bool]

_COLOUR = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TEMPLATE_FAILED = "TemplateFormatErr"


class Pipeline:
    """A compiled pipeline."""

    def __init__(self, stages: Sequence[PipelineStage]) -> None:
        self._early: list[Test] = []
        self._steps: list[Step] = []
        for index, stage in enumerate(stages):
            try:
                if isinstance(stage, LineFilter) and not self._steps:
                    self._early.append(test(stage))
                else:
                    self._steps.append(_step(stage))
            except StageProblem as problem:
                raise problem.of(_written(stages, index)) from problem

    def run(self, time: int, text: bytes, base: dict[str, str]) -> Line | None:
        """Return the line at the end of the pipeline; None where it was dropped."""
        for passes in self._early:
            if not passes(text):
                return None
        line = Line(time, text, base)
        for step in self._steps:
            if not step(line):
                return None
        return line


def _written(stages: Sequence[PipelineStage], index: int) -> str:
    """A stage that is wrong, as complaints show it: line filters together with their neighbours."""
    match stages[index]:
        case LineFilter():
            before = takewhile(_is_line_filter, reversed(stages[:index]))
            after = takewhile(_is_line_filter, stages[index:])
            return " ".join(map(_filter_text, [*reversed(list(before)), *after]))
        case LineFormat(template):
            return f"| line_format {quoted(template)}"
        case LabelFormat(formats):
            pairs = (f"{name}={source if is_label else quoted(source)}" for name, source, is_label in formats)
            return f"| label_format {','.join(pairs)}"
        case _:
            return "|"


def _is_line_filter(stage: PipelineStage) -> bool:
    return isinstance(stage, LineFilter)


def _filter_text(stage: PipelineStage) -> str:
    assert isinstance(stage, LineFilter)
    texts = [quoted(text) for _, text in stage.patterns]
    if stage.operator.startswith("!"):
        return " ".join(f"{stage.operator} {text}" for text in texts)
    return f"{stage.operator} {' or '.join(texts)}"


def _step(stage: PipelineStage) -> Step:
    match stage:
        case LineFilter():
            passes = test(stage)
            return lambda line: passes(line.text)
        case Parse():
            return parser(stage)
        case LineFormat():
            return _line_format(stage)
        case LabelFormat():
            return _label_format(stage)
        case Decolorize():
            return _decolorize
        case Choose():
            return _keep(stage) if stage.keeps else _drop(stage)
        case _:
            return label_step(stage)


def _decolorize(line: Line) -> bool:
    line.text = _COLOUR.sub(b"", line.text)
    return True


def _template(text: str, what: str) -> Template:
    try:
        return Template(text, FUNCTIONS)
    except TemplateError as problem:
        raise StageProblem(f"invalid {what}: {problem}") from problem


def _functions(line: Line) -> dict[str, Function]:
    return {**FUNCTIONS, "__line__": lambda: line.decoded, "__timestamp__": lambda: Moment(line.time)}


def _line_format(stage: LineFormat) -> Step:
    template = _template(stage.template, "line template: template: line:1")

    def step(line: Line) -> bool:
        try:
            line.text = template.render(line.labels, _functions(line)).encode()
        except TemplateError as problem:
            line.fail(_TEMPLATE_FAILED, str(problem))
        return True

    return step


def _label_format(stage: LabelFormat) -> Step:
    formats: list[tuple[str, str, Template | None]] = []
    for name, source, is_label in stage.formats:
        if name == ERROR:
            raise StageProblem(f"{name} cannot be formatted")
        template = None if is_label else _template(source, f"template for label '{name}': template: label:1")
        formats.append((name, source, template))

    def step(line: Line) -> bool:
        for name, source, template in formats:
            if template is None:
                if source in line.labels:
                    line.set(name, line.labels[source])
                    line.remove(source)
                continue
            try:
                line.set(name, template.render(line.labels, _functions(line)))
            except TemplateError as problem:
                line.fail(_TEMPLATE_FAILED, str(problem))
        return True

    return step


def _drop(stage: Choose) -> Step:
    def step(line: Line) -> bool:
        for label in stage.labels:
            if isinstance(label, str):
                line.remove(label)
            elif label.holds(line.labels.get(label.name, "")):
                line.remove(label.name)
        return True

    return step


def _keep(stage: Choose) -> Step:
    names = {label for label in stage.labels if isinstance(label, str)}
    matchers = [label for label in stage.labels if isinstance(label, Matcher)]

    def step(line: Line) -> bool:
        names_kept = set(names)
        names_kept.update(one.name for one in matchers if one.holds(line.labels.get(one.name, "")))
        for name in list(line.labels):
            if name not in names_kept and name not in (ERROR, ERROR_DETAILS):
                line.remove(name)
        return True

    return step
