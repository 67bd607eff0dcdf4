"""Parsers: fields of a line become its labels."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from srearena.cluster.embedded.telemetry.logs.line_patterns import line_pattern
from srearena.cluster.embedded.telemetry.logs.logql.captures import capture, captures
from srearena.cluster.embedded.telemetry.logs.logql.errors import SyntaxProblem
from srearena.cluster.embedded.telemetry.logs.logql.lines import Line, label_name
from srearena.cluster.embedded.telemetry.logs.logql.syntax import Parse

Step = Callable[[Line], bool]

_JSON_ERROR, _LOGFMT_ERROR = "JSONParserErr", "LogfmtParserErr"
_MAX_DEPTH = 64
_PAIR = re.compile(r"""([^\s="]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*)))?(?=\s|$)|(\S+)""", re.ASCII)
_PATH_STEP = re.compile(r"""\.?([^\W\d]\w*)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]""")


class _Text(str):
    """A number as written in the line."""

    __slots__ = ()


_decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str, strict=False)
_decode, _raw_decode = _decoder.decode, _decoder.raw_decode
_decode_kinds = json.JSONDecoder(parse_float=_Text, parse_int=_Text, parse_constant=_Text, strict=False).decode
"""The same, where numbers and texts must be distinguished."""
_SPACE = re.compile(r"[ \t\n\r]*")


def parser(stage: Parse) -> Step:
    match stage.kind:
        case "json":
            return _json_paths(stage.wanted) if stage.wanted else _json
        case "logfmt":
            return _logfmt(stage)
        case "regexp":
            return _regexp(stage.argument)
        case "pattern":
            return _pattern(stage.argument)
        case _:
            return _unpack


def _json(line: Line) -> bool:
    try:
        found = _decode(line.decoded)
    except (ValueError, RecursionError):
        text = line.text.strip()
        line.fail(_JSON_ERROR, _complaint(text))
        # The real parser reads as it goes: the fields before the mistake are there.
        for key, value in _readable_fields(line.decoded):
            line.extract(label_name(key), value)
        return True
    if not isinstance(found, dict):
        line.fail(_JSON_ERROR, _NO_OBJECT)
        return True
    for path, value in _flattened(found, "", 0):
        line.extract(path, value)
    return True


_NO_OBJECT = "Value looks like object, but can't find closing '}' symbol"


def _complaint(text: bytes) -> str:
    return "Malformed JSON error" if text.startswith(b"{") else _NO_OBJECT


_FIELD = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false)\s*[,}]')


def _readable_fields(text: str) -> Iterator[tuple[str, str]]:
    at = text.find("{") + 1
    if not at or text[: at - 1].strip():
        return
    while (found := _FIELD.match(text, at)) is not None:
        value = found[2]
        if value[0] == '"':
            try:
                value = str(_decode(value))
            except ValueError:
                return
        yield found[1], value
        at = found.end()


def _flattened(value: dict[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        name = label_name(key) if not prefix else f"{prefix}_{_part(key)}" if key.strip() else prefix
        if isinstance(item, str):
            yield name, item
        elif item is True or item is False:
            yield name, "true" if item else "false"
        elif isinstance(item, dict) and depth < _MAX_DEPTH:
            yield from _flattened(item, name, depth + 1)


def _part(key: str) -> str:
    named = label_name(key)
    return named[1:] if key.strip()[:1].isdigit() else named


def path_steps(expression: str) -> tuple[str | int, ...]:
    """The steps of `a.b[0]["c d"]`."""
    steps: list[str | int] = []
    at = 0
    while at < len(expression):
        found = _PATH_STEP.match(expression, at)
        if found is None:
            raise SyntaxProblem(f"cannot parse expression [{expression}]: syntax error: unexpected {expression[at]}")
        name, number, quoted = found.groups()
        steps.append(int(number) if number is not None else name if name is not None else quoted)
        at = found.end()
    return tuple(steps)


def _json_paths(fields: tuple[tuple[str, str], ...]) -> Step:
    paths = [(name, path_steps(expression)) for name, expression in fields]

    def step(line: Line) -> bool:
        if not line.text:
            return True
        if line.text[:1] not in b'{["':
            line.fail(_JSON_ERROR)
            return True
        try:
            found = _decode(line.decoded)
        except (ValueError, RecursionError):
            line.fail(_JSON_ERROR, _complaint(line.text))
            return True
        for name, path in paths:
            line.extract(name, _at(found, path, line.decoded))
        return True

    return step


def _at(value: Any, path: tuple[str | int, ...], text: str) -> str:
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else _source_text(text, path)


def _source_text(text: str, path: tuple[str | int, ...]) -> str:
    """Return the source text at a path of valid JSON."""
    at = _past_space(text, 0)
    for step in path:
        at = _past_space(text, at + 1)
        index = 0
        while True:
            key: object = index
            if isinstance(step, str):
                key, at = _raw_decode(text, at)
                at = _past_space(text, _past_space(text, at) + 1)
            if key == step:
                break
            at = _past_space(text, _raw_decode(text, at)[1])
            at = _past_space(text, at + 1)
            index += 1
    return text[at : _raw_decode(text, at)[1]]


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _pairs(text: str) -> Iterator[tuple[str, str] | None]:
    """The fields of a line in logfmt; None for what is none."""
    for key, quoted, plain, odd in _PAIR.findall(text):
        if odd:
            yield None
        elif quoted:
            yield key, _unescaped(quoted)
        else:
            yield key, plain


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def _logfmt(stage: Parse) -> Step:
    is_strict, keeps_empty = "--strict" in stage.flags, "--keep-empty" in stage.flags
    wanted = {expression: name for name, expression in stage.wanted}

    def every(line: Line) -> bool:
        for pair in _pairs(line.decoded):
            if pair is None:
                if is_strict:
                    line.fail(_LOGFMT_ERROR, "logfmt syntax error")
                    break
                continue
            key, value = pair
            name = label_name(key)
            if name and (value or keeps_empty):
                line.extract(name, value)
        return True

    def some(line: Line) -> bool:
        for name in wanted.values():
            if name not in line.base:
                line.set(name, "")
        for pair in _pairs(line.decoded):
            if pair is None:
                if is_strict:
                    line.fail(_LOGFMT_ERROR, "logfmt syntax error")
                    break
                continue
            target = wanted.get(label_name(pair[0]))
            if target is not None:
                line.extract(target, pair[1])
        return True

    return some if wanted else every


def _regexp(expression: str) -> Step:
    compiled = line_pattern(expression)

    def step(line: Line) -> bool:
        found = compiled.program.search(line.text)
        if found is not None:
            for name, number in compiled.names.items():
                value = found.group(number)
                line.extract(name, value.decode("utf-8", "replace") if value else "")
        return True

    return step


def _pattern(expression: str) -> Step:
    parts = captures(expression)

    def step(line: Line) -> bool:
        for name, value in capture(parts, line.decoded):
            line.extract(name, value)
        return True

    return step


def _unpack(line: Line) -> bool:
    if not line.text:
        return True
    if not line.text.startswith(b"{"):
        line.fail(_JSON_ERROR, "expecting json object(6), but it is not")
        return True
    try:
        found = _decode_kinds(line.decoded)
    except (ValueError, RecursionError):
        line.fail(_JSON_ERROR, _complaint(line.text))
        return True
    entry = found.get("_entry")
    if isinstance(entry, str) and not isinstance(entry, _Text):
        line.text = entry.encode()
        for key, value in found.items():
            if key != "_entry" and isinstance(value, str) and not isinstance(value, _Text):
                line.extract(label_name(key), value)
    return True
