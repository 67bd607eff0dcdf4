"""OpenSearch's query DSL over documents in memory: a useful part of it, compiled to predicates.

Text is analysed as the standard analyser does (words in lower case); `field.keyword` is the exact value. What is not
supported is refused as a query that this build does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from srearena.cluster.embedded.durations import TimeError, format_micro_time, parse_time

Document = Mapping[str, Any]
Predicate = Callable[[Document], bool]
_WORDS = re.compile(r"\w+")
_DATE_MATH = re.compile(r"now(?:([+-])(\d+)([smhdw]))?(?:/[smhdw])?")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BOUNDS: dict[str, Callable[[Any, Any], bool]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
}


class SearchError(Exception):
    """The request is refused: the type and the reason of OpenSearch's error."""

    def __init__(self, kind: str, reason: str, status: int = 400, **details: Any) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.status = status
        self.details = details


def values_of(document: Document, field: str) -> list[Any]:
    """The values of a field, by its dotted path; keys may contain dots themselves."""
    field = field.removesuffix(".keyword")
    if field in document:
        value = document[field]
        return value if isinstance(value, list) else [value]
    for position in range(len(field)):
        if field[position] == "." and isinstance(document.get(field[:position]), Mapping):
            found = values_of(document[field[:position]], field[position + 1 :])
            if found:
                return found
    return []


def words_of(value: Any) -> list[str]:
    return _WORDS.findall(str(value).lower())


def _exact(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class QueryCompiler:
    def __init__(self, now: float) -> None:
        self.now = now

    def compile(self, query: Any) -> Predicate:
        if not isinstance(query, dict) or len(query) != 1:
            if query == {}:
                raise SearchError("illegal_argument_exception", "query malformed, empty clause found")
            raise SearchError("parsing_exception", "[_na] query malformed, no start_object after query name")
        ((kind, body),) = query.items()
        builder = _BUILDERS.get(kind)
        if builder is None:
            raise SearchError("parsing_exception", f"unknown query [{kind}]", line=1, col=1)
        if not isinstance(body, dict):
            raise SearchError("parsing_exception", f"[{kind}] query malformed, no start_object after query name")
        return builder(self, body)

    def _field(self, body: Mapping[str, Any], kind: str, parameter: str = "query") -> tuple[str, Any, dict[str, Any]]:
        fields = [name for name in body if name not in ("boost", "_name")]
        if len(fields) != 1:
            raise SearchError(
                "parsing_exception",
                f"[{kind}] query doesn't support multiple fields, found [{fields[0] if fields else ''}] and "
                f"[{fields[1] if len(fields) > 1 else ''}]",
            )
        value = body[fields[0]]
        if isinstance(value, dict):
            return fields[0], value.get(parameter), value
        return fields[0], value, {}

    def match_all(self, body: Mapping[str, Any]) -> Predicate:
        return lambda document: True

    def match_none(self, body: Mapping[str, Any]) -> Predicate:
        return lambda document: False

    def match(self, body: Mapping[str, Any]) -> Predicate:
        field, text, options = self._field(body, "match")
        return _matching(field, text, every=str(options.get("operator", "or")).lower() == "and")

    def match_phrase(self, body: Mapping[str, Any]) -> Predicate:
        field, text, _ = self._field(body, "match_phrase")
        return _containing(field, text)

    def multi_match(self, body: Mapping[str, Any]) -> Predicate:
        fields = [str(name).partition("^")[0] for name in body.get("fields") or ("*",)]
        every = str(body.get("operator", "or")).lower() == "and"
        tests = [_matching(name, body.get("query"), every=every) for name in fields]
        return lambda document: any(test(document) for test in tests)

    def term(self, body: Mapping[str, Any]) -> Predicate:
        field, value, _ = self._field(body, "term", "value")
        wanted = _exact(value)
        return lambda document: any(wanted == term for term in _terms(document, field))

    def terms(self, body: Mapping[str, Any]) -> Predicate:
        field, values, _ = self._field(body, "terms")
        if not isinstance(values, list):
            raise SearchError("parsing_exception", "[terms] query requires an array of terms")
        wanted = {_exact(value) for value in values}
        return lambda document: any(term in wanted for term in _terms(document, field))

    def prefix(self, body: Mapping[str, Any]) -> Predicate:
        field, value, _ = self._field(body, "prefix", "value")
        return lambda document: any(term.startswith(str(value)) for term in _terms(document, field))

    def wildcard(self, body: Mapping[str, Any]) -> Predicate:
        field, value, _ = self._field(body, "wildcard", "value")
        return lambda document: any(fnmatchcase(term, str(value)) for term in _terms(document, field))

    def exists(self, body: Mapping[str, Any]) -> Predicate:
        field = str(body.get("field", ""))
        return lambda document: any(value not in (None, "") for value in values_of(document, field))

    def range(self, body: Mapping[str, Any]) -> Predicate:
        field, _, bounds = self._field(body, "range")
        tests = []
        for name, bound in bounds.items():
            if name in _BOUNDS:
                tests.append((_BOUNDS[name], bound))
            elif name not in ("format", "time_zone", "boost", "relation"):
                raise SearchError("parsing_exception", f"[range] query does not support [{name}]")
        is_date = field in ("@timestamp", "observedTimestamp")
        limits = [(test, self.moment(bound) if is_date else bound) for test, bound in tests]

        def inside(document: Document) -> bool:
            return any(
                all(_holds(test, value, bound) for test, bound in limits) for value in values_of(document, field)
            )

        return inside

    def moment(self, bound: Any) -> str:
        """A bound on a date, in the form that documents have."""
        if isinstance(bound, int | float):
            return format_micro_time(bound / 1000)
        text = str(bound)
        found = _DATE_MATH.fullmatch(text)
        if found:
            shift = int(found[2] or 0) * _UNITS[found[3]] if found[1] else 0
            return format_micro_time(self.now + (shift if found[1] == "+" else -shift))
        if text.isdigit():
            return format_micro_time(int(text) / 1000)
        for suffix in ("", "Z", "T00:00:00Z", ":00Z"):
            try:
                return format_micro_time(parse_time(text + suffix))
            except TimeError:
                continue
        raise SearchError(
            "parse_exception",
            f"failed to parse date field [{text}] with format [strict_date_optional_time||epoch_millis]",
        )

    def bool(self, body: Mapping[str, Any]) -> Predicate:
        clauses: dict[str, list[Predicate]] = {"must": [], "filter": [], "should": [], "must_not": []}
        for name, part in body.items():
            if name in ("minimum_should_match", "boost", "_name", "adjust_pure_negative"):
                continue
            if name not in clauses:
                raise SearchError("parsing_exception", f"[bool] query does not support [{name}]")
            clauses[name] = [self.compile(one) for one in (part if isinstance(part, list) else [part])]
        required = [*clauses["must"], *clauses["filter"]]
        optional, refused = clauses["should"], clauses["must_not"]
        least = int(body.get("minimum_should_match", 0 if required else 1 if optional else 0))

        def holds(document: Document) -> bool:
            return (
                all(test(document) for test in required)
                and not any(test(document) for test in refused)
                and (not least or sum(test(document) for test in optional) >= least)
            )

        return holds

    def query_string(self, body: Mapping[str, Any]) -> Predicate:
        default = body.get("default_field") or next(iter(body.get("fields") or ()), "*")
        return self.text_query(str(body.get("query", "")), str(default), str(body.get("default_operator", "or")))

    def text_query(self, text: str, default: str = "*", operator: str = "or") -> Predicate:
        """Lucene's syntax as far as people type it: words, "phrases", field:value, AND, OR, NOT."""
        groups: list[list[Predicate]] = [[]]
        negate = False
        together = operator.lower() == "and"
        parts = re.findall(r'(?:[\w.@-]+:)?"[^"]*"|\S+', text)
        for number, part in enumerate(parts):
            if part in ("AND", "&&"):
                continue
            if part in ("OR", "||"):
                groups.append([])
                continue
            if part in ("NOT", "!"):
                negate = True
                continue
            test = _word_test(part.lstrip("+-"), default)
            if negate or part.startswith("-"):
                test = _negated(test)
            joined = together or negate or part[0] in "+-" or (number > 0 and parts[number - 1] in ("AND", "&&"))
            if groups[-1] and not joined:
                groups.append([])
            groups[-1].append(test)
            negate = False
        filled = [group for group in groups if group]
        return lambda document: any(all(test(document) for test in group) for group in filled)


def _negated(test: Predicate) -> Predicate:
    return lambda document: not test(document)


def _word_test(part: str, default: str) -> Predicate:
    if part == "*" or part == "*:*":
        return lambda document: True
    field, colon, value = part.partition(":")
    if not colon:
        field, value = default, part
    if value == "*":
        return lambda document: bool(values_of(document, field))
    if value.startswith('"'):
        return _containing(field, value.strip('"'))
    if "*" in value or "?" in value:
        shape = value.lower()
        return lambda document: any(
            fnmatchcase(word, shape) for text in _searched(document, field) for word in words_of(text)
        )
    return _matching(field, value, every=False)


def _searched(document: Document, field: str) -> Iterable[Any]:
    """The values of a field; of all fields for `*`."""
    return _leaves(document) if field == "*" else values_of(document, field)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _leaves(part)
    else:
        yield value


def _matching(field: str, text: Any, *, every: bool) -> Predicate:
    if field.endswith(".keyword"):
        wanted_text = _exact(text)
        return lambda document: any(_exact(value) == wanted_text for value in values_of(document, field))
    wanted = set(words_of(text))
    combine = all if every else any

    def matches(document: Document) -> bool:
        found = {word for value in _searched(document, field) for word in words_of(value)}
        return bool(wanted) and combine(word in found for word in wanted)

    return matches


def _containing(field: str, text: Any) -> Predicate:
    phrase = words_of(text)
    size = len(phrase)

    def contains(document: Document) -> bool:
        for value in _searched(document, field):
            words = words_of(value)
            if any(words[start : start + size] == phrase for start in range(len(words) - size + 1)):
                return True
        return False

    return contains


def _terms(document: Document, field: str) -> Iterator[str]:
    """The indexed terms of a field: of an analysed one its words, of a keyword the value."""
    for value in values_of(document, field):
        if field.endswith(".keyword") or not isinstance(value, str):
            yield _exact(value)
        else:
            yield from words_of(value)


def _holds(test: Callable[[Any, Any], bool], value: Any, bound: Any) -> bool:
    try:
        return test(value, bound)
    except TypeError:
        return test(str(value), str(bound))


_BUILDERS: dict[str, Callable[[QueryCompiler, Mapping[str, Any]], Predicate]] = {
    "bool": QueryCompiler.bool,
    "exists": QueryCompiler.exists,
    "match": QueryCompiler.match,
    "match_all": QueryCompiler.match_all,
    "match_none": QueryCompiler.match_none,
    "match_phrase": QueryCompiler.match_phrase,
    "multi_match": QueryCompiler.multi_match,
    "prefix": QueryCompiler.prefix,
    "query_string": QueryCompiler.query_string,
    "range": QueryCompiler.range,
    "simple_query_string": QueryCompiler.query_string,
    "term": QueryCompiler.term,
    "terms": QueryCompiler.terms,
    "wildcard": QueryCompiler.wildcard,
}
