"""Generated results of a leaderboard, of any size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

METRICS = ["score", "root_cause_entity_f1", "detection"]
FAMILIES, DIFFICULTIES = ("Change", "Network", "Chaos"), ("easy", "hard")
HOSTILE = (
    "<script>window.broken = 1</script><img src=x onerror='window.broken = 2'>"
    '"><svg onload=window.broken=3> \u001b[31mred\u001b[0m \u202eevil ]]> </script> javascript:alert(1) ${1} {{1}}'
)


def _statistics(mean: float) -> dict[str, Any]:
    return {"mean": mean, "stderr": 0.1, "n": 3, "ci95": [max(0.0, mean - 0.1), min(1.0, mean + 0.1)]}


def score_of(agent: int, incident: int, agents: int) -> float:
    """Better agents come first; incidents differ."""
    return max(0.0, round(1 - agent / max(1, agents) - 0.1 * (incident % 4), 4))


TIMELINE = {
    "entries": [{"time": "2026-01-01T00:02:00.500Z", "source": "alert", "entity": HOSTILE, "what": HOSTILE}],
    "charts": {
        "times": [1_767_225_600 + 30 * number for number in range(6)],
        "baseline": [1_767_225_600, 1_767_225_660],
        "services": [
            {
                "name": name,
                "level": level,
                "requests": [20, 20, 20, 19, 21, 20],
                "errors": [0, 0, 0, 0.5, None, 1],
                "latency": [None] * 6,
            }
            for name, level in ((HOSTILE, 2), ("web", 0))
        ],
    },
}


def make_results(root: Path, agents: Sequence[str], incidents: int, *, details: bool = False) -> Path:
    place = root / "results"
    place.mkdir(parents=True)
    names = [f"Scenario-{number}" for number in range(1, incidents + 1)]
    rankings = []
    for a, agent in enumerate(agents):
        cells = {name: score_of(a, i, len(agents)) for i, name in enumerate(names)}
        mean = sum(cells.values()) / len(cells) if cells else 0.0
        rankings.append(_row(a, agent, mean, len(agents), agents, incidents))
        scenarios = {
            name: {
                "runs": [
                    {
                        "run": 1,
                        "outcome": "answered",
                        "scores": dict.fromkeys(METRICS, value),
                        "error": None,
                        "cost_usd": 0.02 * (len(agents) - a),
                        "duration_seconds": 10.0 + a,
                    }
                ],
                "statistics": {metric: _statistics(value) for metric in METRICS},
            }
            for name, value in cells.items()
        }
        (place / f"{agent}.json").write_text(json.dumps({"scenarios": scenarios}))
        if details:
            for name in names:
                _leave(root / agent / name / "1")
    if details:
        (place / "timelines").mkdir()
        for name in names:
            (place / "timelines" / f"{name}.json").write_text(json.dumps(TIMELINE))
    document = {
        "schema_version": "leaderboard-v1",
        "generated_at": "2026-01-01T00:00:00+00:00",
        "ranking_metric": "score",
        "runs_per_scenario": 1,
        "k": 3,
        "metrics": METRICS if agents else [],
        "incidents": {
            name: {
                "name": name,
                "kind": "snapshot",
                "title": "",
                "family": FAMILIES[i % 3],
                "difficulty": DIFFICULTIES[i % 2],
                "application": "shop",
            }
            for i, name in enumerate(names)
        },
        "rankings": rankings,
    }
    (place / "leaderboard.json").write_text(json.dumps(document))
    return place


def _row(a: int, agent: str, mean: float, count: int, agents: Sequence[str], incidents: int) -> dict[str, Any]:
    after = (
        {"agent": agents[a + 1], "difference": 0.1, "permutation_p": 0.3, "within_noise": True}
        if a + 1 < count
        else None
    )
    return {
        "rank": a + 1,
        "agent": agent,
        "model": f"model-{a % 3}",
        "provider": "",
        "kind": "cli",
        "prompt": "",
        "commit": "",
        "cli": "codex",
        "score": mean,
        "ci95": [max(0.0, mean - 0.1), min(1.0, mean + 0.1)],
        "pass@1": mean,
        "pass@k": mean,
        "planned": incidents,
        "graded": incidents,
        "excluded": 0,
        "missing": 0,
        "outcomes": {"answered": incidents},
        "mean_cost_usd": 0.02 * (count - a),
        "mean_seconds": 10.0 + a,
        "mean_turns": 5.0,
        "metrics": {
            metric: {"mean": mean, "ci95": [max(0.0, mean - 0.1), min(1.0, mean + 0.1)], "n": incidents}
            for metric in METRICS
        },
        "against_next": after,
    }


def _leave(directory: Path) -> None:
    """What a run of a hostile agent leaves."""
    (directory / "traces").mkdir(parents=True)
    entity = {"name": HOSTILE, "contributing_factor": True, "reasoning": HOSTILE, "evidence": HOSTILE}
    answer = {"entities": [entity], "propagations": [], "alerts_explained": []}
    (directory / "agent_output.json").write_text(json.dumps(answer))
    graph = {"nodes": [HOSTILE, "shop/Service/cart"], "edges": [[HOSTILE, "shop/Service/cart"]], "roots": [HOSTILE]}
    verdict = {
        "details": {"details": {"predicted_graph": graph}},
        "truth": {"gt_graph": graph, "gt_entities": [HOSTILE], "statements": [HOSTILE]},
    }
    (directory / "judge_output.json").write_text(json.dumps(verdict))
    steps = [
        {"source": "user", "message": HOSTILE},
        {
            "source": "agent",
            "message": HOSTILE,
            "reasoning_content": HOSTILE,
            "tool_calls": [{"function_name": HOSTILE, "arguments": {HOSTILE: HOSTILE}}],
            "observation": {"results": [{"content": HOSTILE}]},
        },
    ]
    (directory / "traces" / "trajectory.json").write_text(json.dumps({"steps": steps}))
