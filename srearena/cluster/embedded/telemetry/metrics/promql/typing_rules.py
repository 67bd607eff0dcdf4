"""Type checks of the real server on a syntactically valid query.

Rules are in the order in which the real server traverses a query, since only the first error is reported.
"""

from __future__ import annotations

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.metrics.labels import NAME
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import (
    MATRIX,
    SCALAR,
    STRING,
    VECTOR,
    Aggregation,
    Call,
    Node,
    Operation,
    Selector,
    Sign,
    Subquery,
    children,
    value_type,
)
from srearena.cluster.embedded.telemetry.metrics.promql.tokens import ParseProblem

_OF_LETTER = {"s": SCALAR, "v": VECTOR, "m": MATRIX, "t": STRING}
COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
SETS = frozenset(("and", "or", "unless"))
PARAMETERS = {
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
        "start_timestamp tanh timestamp",
        "m": "absent_over_time avg_over_time changes count_over_time delta deriv first_over_time idelta increase irate "
        "last_over_time mad_over_time max_over_time min_over_time present_over_time rate resets stddev_over_time "
        "stdvar_over_time sum_over_time ts_of_first_over_time ts_of_last_over_time ts_of_max_over_time "
        "ts_of_min_over_time",
        "": "end pi range start step time",
        "s": "vector",
        "ss": "max_of min_of",
        "vss": "clamp",
        "vs": "clamp_max clamp_min",
        "sv": "histogram_quantile",
        "ssv": "histogram_fraction",
        "mss": "double_exponential_smoothing holt_winters",
        "vtttt": "label_replace",
        "ms": "predict_linear",
        "sm": "quantile_over_time",
        "v?": "day_of_month day_of_week day_of_year days_in_month hour minute month year",
        "vs?": "round",
        "vttt*": "label_join",
        "vt*": "sort_by_label sort_by_label_desc",
        "vv?": "info",
        "vtss9": "histogram_quantiles",
    }
    found: dict[str, tuple[list[str], int]] = {}
    for letters, names in rows.items():
        variadic = {"?": 1, "*": -1, "9": 9}.get(letters[-1:], 0)
        types = [_OF_LETTER[letter] for letter in letters.rstrip("?*9")]
        found |= dict.fromkeys(names.split(), (types, variadic))
    return found


SIGNATURES = _signatures()


def check(node: Node) -> None:
    """Raise the first error."""
    match node:
        case Operation():
            _check_operation(node)
        case Call():
            _check_call(node)
        case Aggregation():
            _expect(node.inner, VECTOR, "aggregation expression")
            if node.parameter is not None:
                _expect(node.parameter, PARAMETERS[node.operator], "aggregation parameter")
        case Sign():
            check(node.inner)
            if value_type(node) not in (SCALAR, VECTOR):
                allowed = "unary expression only allowed on expressions of type scalar or instant vector"
                raise ParseProblem(node.at, f"{allowed}, got {quoted(value_type(node))}")
        case Subquery():
            check(node.inner)
            inner_type = value_type(node.inner)
            if inner_type != VECTOR:
                short = {MATRIX: "matrix"}.get(inner_type, inner_type)
                raise ParseProblem(node.at, f"subquery is only allowed on instant vector, got {short} instead")
        case Selector():
            _check_selector(node)
        case _:
            for child in children(node):
                check(child)


def _expect(node: Node, expected: str, context: str) -> None:
    check(node)
    if value_type(node) != expected:
        raise ParseProblem(node.at, f"expected type {expected} in {context}, got {value_type(node)}")


def _check_call(node: Call) -> None:
    types, variadic = SIGNATURES[node.function]
    count = len(node.arguments)
    context, least = f"argument(s) in call to {quoted(node.function)}, got {count}", len(types) - 1
    if not variadic and count != len(types):
        raise ParseProblem(node.at, f"expected {len(types)} {context}")
    if variadic and count < least:
        raise ParseProblem(node.at, f"expected at least {least} {context}")
    if variadic > 0 and count > least + variadic:
        raise ParseProblem(node.at, f"expected at most {least + variadic} {context}")
    checked = node.arguments
    if node.function == "info" and count > 1:
        _check_label_selector(node, node.arguments[1])
        checked = node.arguments[:1]  # the second selects labels: it may match every series
    for number, child in enumerate(checked):
        _expect(child, types[min(number, len(types) - 1)], f"call to function {quoted(node.function)}")


def _check_label_selector(call: Call, argument: Node) -> None:
    if value_type(argument) != VECTOR:
        raise ParseProblem(
            call.at, f"expected type {VECTOR} in call to function {quoted('info')}, got {value_type(argument)}"
        )
    if not isinstance(argument, Selector):
        raise ParseProblem(argument.at, "expected label selectors only")
    if argument.name:
        raise ParseProblem(argument.at, "expected label selectors only, got vector selector instead")


def _check_operation(node: Operation) -> None:
    check(node.left)
    check(node.right)
    types = (value_type(node.left), value_type(node.right))
    comparison = node.operator in COMPARISONS
    matching = node.matching
    filled = matching.fill_left is not None or matching.fill_right is not None
    if node.return_bool and not comparison:
        raise ParseProblem(node.operator_at, "bool modifier can only be used on comparison operators")
    if comparison and not node.return_bool and types == (SCALAR, SCALAR):
        raise ParseProblem(node.operator_at, "comparisons between scalars must use BOOL modifier")
    for label in matching.labels:
        if matching.on and label in matching.include:
            both = f"label {quoted(label)} must not occur in ON and GROUP clause at once"
            raise ParseProblem(node.operator_at, both)
    for side, kind in zip((node.left, node.right), types, strict=True):
        if kind not in (SCALAR, VECTOR):
            raise ParseProblem(side.at, "binary expression must contain only scalar and instant vector types")
    if types != (VECTOR, VECTOR):
        if matching.labels:
            raise ParseProblem(node.at, "vector matching only allowed between instant vectors")
        if filled:
            raise ParseProblem(node.at, "filling in missing series only allowed between instant vectors")
    elif node.operator in SETS:
        if matching.many:
            raise ParseProblem(node.at, f"no grouping allowed for {quoted(node.operator)} operation")
        if filled:
            raise ParseProblem(node.at, "filling in missing series not allowed for set operators")
    if SCALAR in types and node.operator in SETS:
        raise ParseProblem(node.at, f"set operator {quoted(node.operator)} not allowed in binary scalar expression")


def _check_selector(node: Selector) -> None:
    if node.name:
        for matcher in node.matchers[:-1]:
            if matcher.name == NAME:
                twice = f"metric name must not be set twice: {quoted(node.name)} or {quoted(matcher.value)}"
                raise ParseProblem(node.at, twice)
    elif all(matcher.holds("") for matcher in node.matchers):
        raise ParseProblem(node.at, "vector selector must contain at least one non-empty matcher")
