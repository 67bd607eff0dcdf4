"""The tree of a LogQL query: plain data, made by the parser and read by everything else."""

from __future__ import annotations

from dataclasses import dataclass

from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher

# Stages of a pipeline


@dataclass(frozen=True, slots=True)
class LineFilter:
    operator: str
    """|= != |~ !~ |> !>"""
    patterns: tuple[tuple[str, str], ...]
    """("", text), or ("ip", address): one of them must be found, or with a negative operator none."""


@dataclass(frozen=True, slots=True)
class Parse:
    kind: str
    """json, logfmt, regexp, pattern or unpack."""
    argument: str = ""
    wanted: tuple[tuple[str, str], ...] = ()
    """(label, expression) where only some fields are to be extracted."""
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LineFormat:
    template: str


@dataclass(frozen=True, slots=True)
class LabelFormat:
    formats: tuple[tuple[str, str, bool], ...]
    """(label, source, whether the source is another label's name and not a template)."""


@dataclass(frozen=True, slots=True)
class Decolorize:
    pass


@dataclass(frozen=True, slots=True)
class Choose:
    """`keep` or `drop`."""

    keeps: bool
    labels: tuple[str | Matcher, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A label filter that reads the label's value as an amount."""

    kind: str
    """number, duration, bytes or ip."""
    label: str
    operator: str
    amount: float = 0.0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Both:
    left: LabelFilter
    right: LabelFilter
    either: bool = False


LabelFilter = Matcher | Comparison | Both


@dataclass(frozen=True, slots=True)
class Unwrap:
    label: str
    conversion: str = ""
    filters: tuple[LabelFilter, ...] = ()


PipelineStage = LineFilter | Parse | LineFormat | LabelFormat | Decolorize | Choose | Matcher | Comparison | Both

# Expressions


@dataclass(frozen=True, slots=True)
class LogQuery:
    matchers: tuple[Matcher, ...]
    stages: tuple[PipelineStage, ...] = ()


@dataclass(frozen=True, slots=True)
class LogRange:
    query: LogQuery
    seconds: float
    offset: float = 0.0
    unwrap: Unwrap | None = None


@dataclass(frozen=True, slots=True)
class Grouping:
    without: bool
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RangeAggregation:
    operation: str
    range: LogRange
    parameter: float | None = None
    grouping: Grouping | None = None


@dataclass(frozen=True, slots=True)
class VectorAggregation:
    operation: str
    inner: Metric
    parameter: int = 0
    grouping: Grouping | None = None


@dataclass(frozen=True, slots=True)
class Literal:
    value: float


@dataclass(frozen=True, slots=True)
class VectorOf:
    value: float


@dataclass(frozen=True, slots=True)
class LabelReplace:
    inner: Metric
    target: str
    replacement: str
    source: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Matching:
    on: bool = False
    labels: tuple[str, ...] = ()
    many: str = ""
    """`left` or `right`: the side of which several series may meet one of the other."""
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Metric
    right: Metric
    matching: Matching
    returns_bool: bool = False


Metric = RangeAggregation | VectorAggregation | Literal | VectorOf | LabelReplace | Binary
Expression = LogQuery | Metric
