"""Functions of templates in LogQL: those of Go's templates and of Loki."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from urllib.parse import quote_plus, unquote_plus

from srearena.cluster.embedded.telemetry.logs.line_patterns import line_pattern
from srearena.cluster.embedded.telemetry.logs.logql.amounts import go_duration, number, size
from srearena.cluster.embedded.telemetry.templates import MAX_OUTPUT, TemplateError, printed

_VERB = re.compile(r"%([-+# 0]*)(\d*)(?:\.(\d+))?([a-zA-Z%])")
_LAYOUT = {
    "2006": "%Y", "January": "%B", "Jan": "%b", "01": "%m", "Monday": "%A", "Mon": "%a", "02": "%d", "15": "%H",
    "03": "%I", "04": "%M", "05": "%S", "06": "%y", "PM": "%p", "MST": "%Z",
}  # fmt: skip
_LAYOUT_WORD = re.compile("|".join(_LAYOUT) + r"|\.0+|\.9+|Z07:00|-0700")


class Moment(int):
    """Nanoseconds since the epoch, which a template prints as a time."""

    def __str__(self) -> str:
        return self.layout("2006-01-02 15:04:05.999999999 -0700 MST")

    def layout(self, layout: str) -> str:
        """Written after the model of Go's reference time."""
        seconds, nanos = divmod(int(self), 10**9)
        moment = datetime.fromtimestamp(seconds, UTC)

        def part(found: re.Match[str]) -> str:
            word = found[0]
            if word == "Z07:00":
                return "Z"
            if word == "-0700":
                return "+0000"
            if word[0] == ".":
                digits = f"{nanos:09d}"[: len(word) - 1]
                return "." + digits if word[1] == "0" else ("." + digits).rstrip("0").rstrip(".")
            return moment.strftime(_LAYOUT[word])

        return _LAYOUT_WORD.sub(part, layout)


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TemplateError(f"wrong type for value; expected string; got {type(value).__name__}")
    return value


def whole(value: Any) -> int:
    """What sprig's `int` makes of anything: 0 where it is no number."""
    return int(decimal(value)) if math.isfinite(decimal(value)) else 0


def decimal(value: Any) -> float:
    if isinstance(value, str):
        found = number(value)
        return found if found is not None else 0.0
    return float(value) if isinstance(value, (int, float)) else 0.0


def bounded(value: str) -> str:
    if len(value) > MAX_OUTPUT:
        raise TemplateError(f"the template writes more than {MAX_OUTPUT} bytes")
    return value


def go_printf(layout: str, *values: Any) -> str:
    rest = list(values)

    def part(found: re.Match[str]) -> str:
        flags, width, precision, verb = found.groups()
        if verb == "%":
            return "%"
        if not rest:
            return f"%!{verb}(MISSING)"
        value = rest.pop(0)
        digits = int(precision) if precision else None
        written = _verb(verb, value, digits, flags)
        if width:
            columns = min(int(width), 10_000)
            fill = "0" if "0" in flags and "-" not in flags else " "
            written = written.ljust(columns) if "-" in flags else written.rjust(columns, fill)
        return written

    return bounded(_VERB.sub(part, text(layout)))


def _verb(verb: str, value: Any, digits: int | None, flags: str) -> str:
    match verb:
        case "s" | "v":
            written = printed(value)
            return written[:digits] if digits is not None and verb == "s" else written
        case "q":
            return json.dumps(printed(value), ensure_ascii=False)
        case "t" if isinstance(value, bool):
            return printed(value)
        case "d" if isinstance(value, int):
            return f"{value:+d}" if "+" in flags else str(value)
        case "x" if isinstance(value, int):
            return f"{value:x}"
        case "x" if isinstance(value, str):
            return value.encode().hex()
        case "f" | "F" if isinstance(value, float):
            return f"{value:.{6 if digits is None else min(digits, 100)}f}"
        case "e" | "g" if isinstance(value, float):
            return printed(value) if digits is None else f"{value:.{min(digits, 100)}{verb}}"
        case _:
            return f"%!{verb}({_type_name(value)}={printed(value)})"


def _type_name(value: Any) -> str:
    return {str: "string", bool: "bool", int: "int", float: "float64"}.get(type(value), type(value).__name__)


def _regex_replace(expression: str, subject: str, replacement: str) -> str:
    return line_pattern(expression).replace_all(subject, lambda match: match.expand(replacement))


def _regex_replace_literal(expression: str, subject: str, replacement: str) -> str:
    return line_pattern(expression).replace_all(subject, lambda match: replacement)


def _substr(start: Any, end: Any, value: str) -> str:
    first, last = whole(start), whole(end)
    if first < 0:
        return value[: max(last, 0)]
    return value[first:] if last < 0 or last > len(value) else value[first:last]


def _trunc(length: Any, value: str) -> str:
    count = whole(length)
    return value[count:] if count < 0 and len(value) + count > 0 else value[:count] if count >= 0 else value


def _align(length: Any, value: str, *, left: bool) -> str:
    count = whole(length)
    if count < 0:
        return value
    count = min(count, 10_000)
    if left:
        return value[:count].ljust(count)
    return value[-count:].rjust(count) if count else ""


def _indent(spaces: Any, value: str) -> str:
    pad = " " * min(whole(spaces), 1000)
    return bounded(pad + value.replace("\n", "\n" + pad))


def _round(value: Any, places: Any, half_up_at: Any = 0.5) -> float:
    exponent = Decimal(1).scaleb(-whole(places))
    return float(Decimal(repr(decimal(value))).quantize(exponent, ROUND_HALF_UP))


def _from_json(value: str) -> Any:
    try:
        found = json.loads(value, parse_int=float)
    except ValueError:
        return ""
    return found


def _b64dec(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode("utf-8", "replace")
    except binascii.Error as problem:
        return f"illegal base64 data: {problem}"


def _bytes(value: str) -> float:
    found = size(value)
    if found is None:
        raise TemplateError(f'strconv.ParseFloat: parsing "{value}": invalid syntax')
    return found


def _duration(value: str) -> float:
    found = go_duration(value)
    if found is None:
        raise TemplateError(f'time: invalid duration "{value}"')
    return found


def _unix_to_time(value: str) -> Moment:
    factor = {5: 86400 * 10**9, 10: 10**9, 13: 10**6, 16: 10**3, 19: 1}.get(len(value))
    if factor is None or not value.isdigit():
        raise TemplateError(f"unable to parse time '{value}'")
    return Moment(int(value) * factor)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def function(left: Any, right: Any) -> bool:
        if isinstance(left, str) is not isinstance(right, str):
            raise TemplateError("incompatible types for comparison")
        return compare(left, right)

    return function


def _equal(left: Any, *others: Any) -> bool:
    for other in others:
        if isinstance(left, str) is not isinstance(other, str):
            raise TemplateError("incompatible types for comparison")
    return any(left == other for other in others)


def _and(*values: Any) -> Any:
    return next((value for value in values if not value), values[-1])


def _or(*values: Any) -> Any:
    return next((value for value in values if value), values[-1])


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        value = value.get(key, "") if isinstance(value, dict) else value[whole(key)]
    return value


def _divided(left: Any, right: Any) -> int:
    return int(whole(left) / whole(right))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ToLower": lambda s: text(s).lower(),
    "ToUpper": lambda s: text(s).upper(),
    "Replace": lambda s, old, new, n: bounded(text(s).replace(old, new, n)),
    "Trim": lambda s, cut: text(s).strip(cut),
    "TrimLeft": lambda s, cut: text(s).lstrip(cut),
    "TrimRight": lambda s, cut: text(s).rstrip(cut),
    "TrimPrefix": lambda s, prefix: text(s).removeprefix(prefix),
    "TrimSuffix": lambda s, suffix: text(s).removesuffix(suffix),
    "TrimSpace": lambda s: text(s).strip(),
    "regexReplaceAll": _regex_replace,
    "regexReplaceAllLiteral": _regex_replace_literal,
    "count": lambda expression, s: sum(1 for _ in line_pattern(expression).find_all(text(s))),
    "urldecode": lambda s: unquote_plus(text(s)),
    "urlencode": lambda s: quote_plus(text(s)),
    "bytes": _bytes,
    "duration": _duration,
    "duration_seconds": _duration,
    "unixEpoch": lambda moment: str(int(moment) // 10**9),
    "unixEpochMillis": lambda moment: str(int(moment) // 10**6),
    "unixEpochNanos": lambda moment: str(int(moment)),
    "unixToTime": _unix_to_time,
    "date": lambda layout, moment: Moment(moment).layout(text(layout)),
    "alignLeft": lambda n, s: _align(n, text(s), left=True),
    "alignRight": lambda n, s: _align(n, text(s), left=False),
    "b64enc": lambda s: base64.b64encode(text(s).encode()).decode(),
    "b64dec": _b64dec,
    "lower": lambda s: text(s).lower(),
    "upper": lambda s: text(s).upper(),
    "title": lambda s: re.sub(r"(?<!\S)\S", lambda found: found[0].upper(), text(s)),
    "trunc": lambda n, s: _trunc(n, text(s)),
    "substr": lambda start, end, s: _substr(start, end, text(s)),
    "contains": lambda part, s: part in text(s),
    "hasPrefix": lambda prefix, s: text(s).startswith(prefix),
    "hasSuffix": lambda suffix, s: text(s).endswith(suffix),
    "indent": lambda n, s: _indent(n, text(s)),
    "nindent": lambda n, s: "\n" + _indent(n, text(s)),
    "replace": lambda old, new, s: bounded(text(s).replace(old, new)),
    "repeat": lambda n, s: bounded(text(s) * min(max(whole(n), 0), MAX_OUTPUT)) if len(text(s)) < 1024 else text(s),
    "trim": lambda s: text(s).strip(),
    "trimAll": lambda cut, s: text(s).strip(cut),
    "trimPrefix": lambda prefix, s: text(s).removeprefix(prefix),
    "trimSuffix": lambda suffix, s: text(s).removesuffix(suffix),
    "int": whole,
    "float64": decimal,
    "add": lambda *values: sum(map(whole, values)),
    "sub": lambda left, right: whole(left) - whole(right),
    "mul": lambda *values: math.prod(map(whole, values)),
    "div": _divided,
    "mod": lambda left, right: int(math.fmod(whole(left), whole(right))),
    "addf": lambda *values: sum(map(decimal, values)),
    "subf": lambda first, *rest: decimal(first) - sum(map(decimal, rest)),
    "mulf": lambda *values: math.prod(map(decimal, values)),
    "divf": lambda first, *rest: decimal(first) / math.prod(map(decimal, rest)),
    "max": lambda *values: max(map(whole, values)),
    "min": lambda *values: min(map(whole, values)),
    "maxf": lambda *values: max(map(decimal, values)),
    "minf": lambda *values: min(map(decimal, values)),
    "ceil": lambda value: float(math.ceil(decimal(value))),
    "floor": lambda value: float(math.floor(decimal(value))),
    "round": _round,
    "fromJson": _from_json,
    "default": lambda fallback, value="": value or fallback,
    "printf": go_printf,
    "print": lambda *values: bounded("".join(map(printed, values))),
    "println": lambda *values: bounded(" ".join(map(printed, values)) + "\n"),
    "len": lambda value: len(value.encode()) if isinstance(value, str) else len(value),
    "index": _index,
    "not": lambda value: not value,
    "and": _and,
    "or": _or,
    "eq": _equal,
    "ne": lambda left, right: not _equal(left, right),
    "lt": _ordered(lambda left, right: left < right),
    "le": _ordered(lambda left, right: left <= right),
    "gt": _ordered(lambda left, right: left > right),
    "ge": _ordered(lambda left, right: left >= right),
    "__line__": lambda: "",
    "__timestamp__": lambda: Moment(0),
}
"""`__line__` and `__timestamp__` are bound to the line at hand when a template is carried out."""
