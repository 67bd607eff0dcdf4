"""Results of trials for tests, as `srearena run` writes them, with texts of a hostile agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from srearena.conductor.results.signals import SIGNALS
from tests.view.signals import HANDED_OVER, signals

HOSTILE = (
    "<script>window.broken = 1</script><img src=x onerror='window.broken = 2'>"
    '"><svg onload=window.broken=3> \u001b[31mred\u001b[0m \u202eevil ]]> </script> <!-- javascript:alert(1) ${1} ```'
)
SERVICE = "social-network/Service/user-service"


def _at(second: float) -> str:
    return f"2026-01-01T00:{int(second) // 60:02}:{second % 60:06.3f}+00:00"


def session(acts: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """The entries of an event log: a stage, model calls, actions and their answers."""
    entries: list[dict[str, Any]] = [{"at": _at(0), "what": "stage", "name": "detection"}]
    for number, (command, answer) in enumerate(acts, 1):
        entries += [
            {
                "at": _at(number),
                "what": "model call",
                "model": "example/model-1",
                "tokens_in": 1000,
                "tokens_out": 20,
                "cost": 0.0125,
                "text": f"Thought {number}: look at it.\n```\n{command}\n```",
            },
            {
                "at": _at(number),
                "clock": HANDED_OVER + 30 * number,
                "what": "action",
                "step": number,
                "text": f"```\n{command}\n```",
            },
            {"at": _at(number + 0.5), "what": "state", "step": number, "text": answer},
        ]
    return entries


ACTS = [
    ("kubectl get pods -A", "NAME READY\nuser-service-1 1/1"),
    ("kubectl describe service user-service", "TargetPort: 9999/TCP"),
    ('echo "' + HOSTILE + '"', HOSTILE),
    ("kubectl get podz", "Error: the server has no resource type podz"),
]


def verdict(passed: bool, *reasons: str) -> dict[str, Any]:
    return {"passed": passed, "score": float(passed), "reasons": list(reasons), "details": {}}


def result(problem: str, *, agent: str, outcome: str, **change: Any) -> dict[str, Any]:
    stages = [
        {
            "stage": "detection",
            "submitted": True,
            "submission": "Yes",
            "wall_seconds": 12.5,
            "steps": 2,
            "verdict": verdict(True, "the system is broken, as the agent says"),
        },
        {
            "stage": "localization",
            "submitted": True,
            "submission": ["user-service", HOSTILE],
            "wall_seconds": 40.0,
            "steps": 2,
            "verdict": verdict(outcome == "pass", HOSTILE),
        },
    ]
    return {
        "schema": "srearena.trial/1",
        "problem": problem,
        "application": "Social Network",
        "level": "virtualization",
        "agent": agent,
        "isolation": "bubblewrap",
        "trial": 0,
        "seed": 3,
        "session": f"session-{agent}",
        "outcome": outcome,
        "reason": "" if outcome == "pass" else HOSTILE,
        "stages": stages,
        "scores": {"detection": 1.0, "localization": float(outcome == "pass")},
        "collateral": [{"class": "harmful", "change": HOSTILE}],
        "usage": {"steps": 4, "tokens_in": 4000, "tokens_out": 80, "cost": 0.05, "wall_seconds": 52.5},
        "ground_truth": {
            "roots": [SERVICE],
            "aliases": [[SERVICE, "social-network/Deployment/user-service"]],
            "explanation": "The Service forwards to a port on which nothing listens.",
            "system_level": "Virtualization",
            "fault_type": "Misconfiguration",
        },
        **change,
    }


def write_trial(run: Path, document: dict[str, Any], entries: list[dict[str, Any]] | None = None) -> Path:
    folder = run / "trials" / str(document["problem"]) / str(document["trial"])
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(document))
    lines = session(ACTS) if entries is None else entries
    (folder / "session.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    return folder


def make_runs(root: Path) -> Path:
    """Two runs of two agents on the same problem, and a trial that ended in an error."""
    folder = write_trial(root / "alpha-1", result("wrong_port", agent="alpha", outcome="pass"))
    (folder / SIGNALS).write_text(json.dumps(signals()))
    acts = [*ACTS[:1], ("kubectl rollout restart deployment", "restarted")]
    write_trial(root / "beta-1", result("wrong_port", agent="beta", outcome="fail"), session(acts))
    failed = {"stages": [], "usage": {}, "scores": {}, "level": "network", "reason": "no such model", "trial": 1}
    write_trial(root / "beta-1", result("lost_packets", agent="beta", outcome="agent error", **failed), [])
    return root
