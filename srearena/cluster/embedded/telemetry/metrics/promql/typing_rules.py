"""Type checks of the real server on a syntactically valid query.

Rules are in the order in which the real server traverses a query, since only the first error is reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.metrics.promql.tokens import ParseProblem

SCALAR, VECTOR, MATRIX, STRING = "scalar", "instant vector", "range vector", "string"
_OF_LETTER = {"s": SCALAR, "v": VECTOR, "m": MATRIX, "t": STRING}
COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
SETS = frozenset(("and", "or", "unless"))
_PARAMETER = {
    "topk": SCALAR,
    "bottomk": SCALAR,
    "quantile": SCALAR,
    "limitk": SCALAR,
    "limit_ratio": SCALAR,
    "count_values": STRING,
}


def _signatures() -> dict[str, tuple[list[str], int]]:
    """Per function the types of its arguments, and how often the last may come or not (-1: as often as you like)."""
    rows = {
        "v": "abs absent acos acosh asin asinh atan atanh ceil cos cosh deg exp floor histogram_avg histogram_count "
        "histogram_stddev histogram_stdvar histogram_sum ln log10 log2 rad scalar sgn sin sinh sort sort_desc sqrt tan "
        "tanh timestamp",
        "m": "absent_over_time avg_over_time changes count_over_time delta deriv first_over_time idelta increase irate "
        "last_over_time mad_over_time max_over_time min_over_time present_over_time rate resets stddev_over_time "
        "stdvar_over_time sum_over_time ts_of_first_over_time ts_of_last_over_time ts_of_max_over_time "
        "ts_of_min_over_time",
        "": "pi time",
        "s": "vector",
        "vss": "clamp",
        "vs": "clamp_max clamp_min",
        "sv": "histogram_quantile",
        "ssv": "histogram_fraction",
        "mss": "holt_winters double_exponential_smoothing",
        "vtttt": "label_replace",
        "ms": "predict_linear",
        "sm": "quantile_over_time",
        "v?": "day_of_month day_of_week day_of_year days_in_month hour minute month year",
        "vs?": "round",
        "vttt*": "label_join",
        "vt*": "sort_by_label sort_by_label_desc",
        "vv?": "info",
    }
    found: dict[str, tuple[list[str], int]] = {}
    for letters, names in rows.items():
        variadic = {"?": 1, "*": -1}.get(letters[-1:], 0)
        types = [_OF_LETTER[letter] for letter in letters.rstrip("?*")]
        found |= dict.fromkeys(names.split(), (types, variadic))
    return found


SIGNATURES = _signatures()


@dataclass(slots=True)
class Piece:
    """A part of a query: its kind, position, and what the checks need."""

    kind: str
    at: int
    children: list[Piece] = field(default_factory=list)
    name: str = ""
    """Of a function, an aggregator or an operator."""
    operator_at: int = 0
    return_bool: bool = False
    grouping: bool = False
    matching_labels: tuple[str, ...] = ()
    on: bool = False
    included_labels: tuple[str, ...] = ()
    metric: str = ""
    matchers: list[tuple[str, str, str]] = field(default_factory=list)
    modified: frozenset[str] = frozenset()
    """Modifiers: "offset" and "@"."""

    @property
    def type(self) -> str:
        match self.kind:
            case "number":
                return SCALAR
            case "string":
                return STRING
            case "range" | "subquery":
                return MATRIX
            case "negation" | "paren":
                return self.children[0].type
            case "call":
                return SCALAR if self.name in ("time", "pi", "scalar") else VECTOR
            case "operation":
                return SCALAR if all(child.type == SCALAR for child in self.children) else VECTOR
            case _:
                return VECTOR


def check(piece: Piece) -> None:
    """Raise the first error."""
    match piece.kind:
        case "operation":
            _check_operation(piece)
        case "call":
            _check_call(piece)
        case "aggregation":
            *parameter, inner = piece.children
            _expect(inner, VECTOR, "aggregation expression")
            if parameter:
                _expect(parameter[0], _PARAMETER[piece.name], "aggregation parameter")
        case "negation":
            check(piece.children[0])
            if piece.type not in (SCALAR, VECTOR):
                allowed = "unary expression only allowed on expressions of type scalar or instant vector"
                raise ParseProblem(piece.at, f"{allowed}, got {quoted(piece.type)}")
        case "subquery":
            check(piece.children[0])
            inner_type = piece.children[0].type
            if inner_type != VECTOR:
                raise ParseProblem(piece.at, f"subquery is only allowed on instant vector, got {inner_type} instead")
        case "selector":
            _check_selector(piece)
        case _:
            for child in piece.children:
                check(child)


def _expect(piece: Piece, expected: str, context: str) -> None:
    check(piece)
    if piece.type != expected:
        raise ParseProblem(piece.at, f"expected type {expected} in {context}, got {piece.type}")


def _check_call(piece: Piece) -> None:
    types, variadic = SIGNATURES[piece.name]
    count = len(piece.children)
    context, least = f"argument(s) in call to {quoted(piece.name)}, got {count}", len(types) - 1
    if not variadic and count != len(types):
        raise ParseProblem(piece.at, f"expected {len(types)} {context}")
    if variadic and count < least:
        raise ParseProblem(piece.at, f"expected at least {least} {context}")
    if variadic > 0 and count > least + variadic:
        raise ParseProblem(piece.at, f"expected at most {least + variadic} {context}")
    for number, child in enumerate(piece.children):
        _expect(child, types[min(number, len(types) - 1)], f"call to function {quoted(piece.name)}")


def _check_operation(piece: Piece) -> None:
    left, right = piece.children
    check(left)
    check(right)
    types = (left.type, right.type)
    comparison = piece.name in COMPARISONS
    if piece.return_bool and not comparison:
        raise ParseProblem(piece.operator_at, "bool modifier can only be used on comparison operators")
    if comparison and not piece.return_bool and types == (SCALAR, SCALAR):
        raise ParseProblem(piece.operator_at, "comparisons between scalars must use BOOL modifier")
    for label in piece.matching_labels:
        if piece.on and label in piece.included_labels:
            both = f"label {quoted(label)} must not occur in ON and GROUP clause at once"
            raise ParseProblem(piece.operator_at, both)
    for side in (left, right):
        if side.type not in (SCALAR, VECTOR):
            raise ParseProblem(side.at, "binary expression must contain only scalar and instant vector types")
    if types != (VECTOR, VECTOR) and piece.matching_labels:
        raise ParseProblem(piece.at, "vector matching only allowed between instant vectors")
    if types == (VECTOR, VECTOR) and piece.name in SETS and piece.grouping:
        raise ParseProblem(piece.at, f"no grouping allowed for {quoted(piece.name)} operation")
    if SCALAR in types and piece.name in SETS:
        raise ParseProblem(piece.at, f"set operator {quoted(piece.name)} not allowed in binary scalar expression")


def _check_selector(piece: Piece) -> None:
    if piece.metric:
        for name, _, value in piece.matchers:
            if name == "__name__":
                twice = f"metric name must not be set twice: {quoted(piece.metric)} or {quoted(value)}"
                raise ParseProblem(piece.at, twice)
        return
    if all(_matches_nothing(operator, value) for _, operator, value in piece.matchers):
        raise ParseProblem(piece.at, "vector selector must contain at least one non-empty matcher")


def _matches_nothing(operator: str, value: str) -> bool:
    """Return whether a matcher matches a missing label."""
    matched = re.fullmatch(r"(\.\*|\|)*", value) is not None if "~" in operator else not value
    return matched is not operator.startswith("!")
