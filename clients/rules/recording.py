"""The agent on a recorded incident: it asks the tools as `suspects` tells, blames the first suspect, and submits.

Alerts name what was affected.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

from clients.rules.suspects import Question, Row, Verdict, investigation
from sre_tools.offline_incident_analysis.workloads import workload_of


def investigate() -> Generator[str, str, None]:
    """Ask the tools, then submit."""
    questions = investigation()
    question = next(questions)
    while True:
        reply = yield _block(_call(question))
        try:
            question = questions.send(_parsed(reply))
        except StopIteration as end:
            answer = diagnose(end.value)
            break
    while True:
        yield _block(f"submit({json.dumps(json.dumps(answer))})")


def diagnose(verdict: Verdict) -> dict[str, Any]:
    """The diagnosis: one cause, and what it affected."""
    if not verdict.suspects:
        return {"entities": [], "propagations": [], "alerts_explained": []}
    first = verdict.suspects[0]
    namespace = next((str(row["namespace"]) for row in verdict.alerts if row.get("namespace")), "")
    # Traces and alerts name components without kind; most components are Deployments.
    cause = first.entity if "/" in first.entity else _name(namespace, "Deployment", first.entity)
    why = "; ".join(first.reasons[:3])
    blamed = workload_of(cause.rpartition("/")[2])
    affected = dict.fromkeys(
        _name(str(row.get("namespace") or ""), "Service", str(row["entity"]))
        for row in verdict.alerts
        if row.get("entity") and workload_of(str(row["entity"])) != blamed
    )
    entities = [{"name": cause, "contributing_factor": True, "reasoning": why, "evidence": why}]
    entities += [
        {"name": name, "contributing_factor": False, "reasoning": "an alert fired for it", "evidence": "alert_summary"}
        for name in affected
    ]
    propagations = [
        {"source": cause, "target": name, "condition": why, "effect": "errors or latency, by its alerts"}
        for name in affected
    ]
    explained = [
        {"alert": str(row.get("alertname")), "explanation": "caused by it", "explained": True} for row in verdict.alerts
    ]
    return {"entities": entities, "propagations": propagations, "alerts_explained": explained}


def _name(namespace: str, kind: str, name: str) -> str:
    return "/".join(filter(None, (namespace, kind, name)))


def _call(question: Question) -> str:
    tool, arguments = question
    return f"{tool}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def _parsed(reply: str) -> Row:
    """A reply as a dictionary; empty where the tool could not answer or the reply was cut."""
    try:
        parsed = json.loads(reply)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _block(text: str) -> str:
    return f"```\n{text}\n```"
