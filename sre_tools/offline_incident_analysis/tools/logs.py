"""log_analysis."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import PagedArguments
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions, checked_regex
from sre_tools.offline_incident_analysis.identity import nearest, parse_identifier
from sre_tools.offline_incident_analysis.log_patterns import Pattern, find_lines, merge_templates
from sre_tools.offline_incident_analysis.replies import Answer, reply_schema
from sre_tools.offline_incident_analysis.topology import pods_and_owners, topology_of
from sre_tools.registry import tool

_MAX_TEMPLATES = 20_000  # the most frequent ones; chosen: merging them takes under a second
_RANK = {"FATAL": 0, "ERROR": 1, "WARN": 2}


class LogArguments(PagedArguments):
    logs_file: str | None = Field(None, description="the logs table; leave out for the server's snapshot")
    k8_object: str | None = Field(None, description="Pod, Deployment or Service, as Kind/name or name; exact")
    service_name: str | None = Field(None, description="exact name of the service")
    severity_filter: str | None = Field(None, description='comma separated, as in "ERROR,WARN"')
    body_contains: str | None = Field(None, description="regular expression (RE2), case does not matter")
    pattern_analysis: bool = Field(True, description="false gives single lines, newest first")
    max_patterns: int = Field(50, ge=1, le=1000)
    similarity_threshold: float = Field(0.5, ge=0, le=1)
    limit: int | None = Field(100, ge=0)


def _add_object(call: Call, where: Conditions, text: str) -> None:
    pods, names = pods_and_owners(topology_of(call.snapshot), text)
    target = parse_identifier(text)
    if (target.kind or "").lower() == "pod":
        where.add("lower(pod) = lower(?)", target.name)
        return
    marks, others = ", ".join("?" for _ in pods) or "NULL", ", ".join("?" for _ in names)
    where.add(f"pod IN ({marks}) OR deployment IN ({others}) OR service IN ({others})", *pods, *names, *names)


@tool(
    title="Logs and their patterns",
    order=40,
    output_schema=reply_schema(
        {
            "pattern": "lines that say the same, with what differs taken out",
            "count": "lines",
            "percentage": "of all lines selected",
            "severity_breakdown": "",
            "service_breakdown": "",
            "time_range": "first and last",
            "example": "one whole line",
        }
    ),
)
def log_analysis(call: Call, arguments: LogArguments) -> Answer:
    """Log lines grouped into patterns, errors first, or single lines (pattern_analysis=false).
    Example: log_analysis(service_name="checkout", severity_filter="ERROR,FATAL")."""
    where = Conditions()
    where.add_time_range("time", arguments)
    if arguments.service_name:
        where.add("lower(service) = lower(?)", arguments.service_name)
    if arguments.severity_filter:
        severities = [part.strip().upper() for part in arguments.severity_filter.split(",") if part.strip()]
        severities = ["WARN" if part == "WARNING" else part for part in severities]
        where.add(f"severity IN ({', '.join('?' for _ in severities) or 'NULL'})", *severities)
    if arguments.body_contains:
        pattern = checked_regex(call.snapshot.rows, arguments.body_contains, "body_contains")
        where.add("regexp_matches(body, ?, 'i')", pattern)
    if arguments.k8_object:
        _add_object(call, where, arguments.k8_object)
    total = call.snapshot.rows(f"SELECT count(*) AS n FROM logs {where.where}", where.values)[0]["n"]
    notes = _notes_on_empty(call, arguments) if not total else []
    if not arguments.pattern_analysis:
        rows = call.snapshot.rows(
            f"""SELECT time AS timestamp, service, severity, body, trace_id, span_id, deployment, pod, namespace
                FROM logs {where.where} ORDER BY time DESC NULLS LAST, service, body LIMIT ? OFFSET ?""",
            [*where.values, call.window.max_rows, call.window.offset],
        )
        return Answer(rows, {"total_logs": total}, notes, total=total, start=call.window.offset)
    grouped = call.snapshot.rows(
        f"""SELECT template, severity, service, count(*) AS n, min(time) AS first, max(time) AS last
            FROM logs {where.where} GROUP BY template, severity, service
            ORDER BY n DESC, template, service LIMIT {_MAX_TEMPLATES}""",
        where.values,
    )
    patterns = merge_templates(grouped, arguments.similarity_threshold)
    patterns.sort(key=lambda p: (min((_RANK.get(s, 3) for s in p.severities), default=3), -p.count))
    shown = patterns[: arguments.max_patterns]
    lines = find_lines(call.snapshot, ((p.example["template"], p.example["timestamp"]) for p in shown))
    rows = [_pattern_row(pattern, total, lines) for pattern in shown]
    if len(patterns) > arguments.max_patterns:
        notes.append(f"{len(patterns) - arguments.max_patterns} rarer patterns are not listed; raise max_patterns")
    summary = {
        "total_logs": total,
        "pattern_count": len(patterns),
        "similarity_threshold": arguments.similarity_threshold,
    }
    return Answer(rows, summary, notes)


def _pattern_row(pattern: Pattern, total: int, lines: dict[Any, str]) -> dict[str, Any]:
    example = dict(pattern.example)
    template = example.pop("template") or ""
    body = lines.get((template, example["timestamp"]), template)
    return {
        "pattern": " ".join(pattern.words),
        "count": pattern.count,
        "percentage": round(100 * pattern.count / total, 1) if total else 0,
        "severity_breakdown": dict(pattern.severities.most_common()),
        "service_breakdown": dict(pattern.services.most_common(10)),
        "time_range": {"first": pattern.first, "last": pattern.last},
        "example": {"body": body[:500], **example},
    }


def _notes_on_empty(call: Call, arguments: LogArguments) -> list[str]:
    services = [row["service"] for row in call.snapshot.rows("SELECT DISTINCT service FROM logs ORDER BY 1")]
    if not services:
        return ["this snapshot has no logs; try event_analysis or get_trace_error_tree"]
    if arguments.service_name and arguments.service_name.lower() not in (str(name).lower() for name in services):
        near = ", ".join(nearest(arguments.service_name, (str(name) for name in services)))
        raise ToolError(f"no logs of a service {arguments.service_name!r}; nearest: {near}")
    return ["no line matches; drop severity_filter, body_contains or the time range"]
