"""Answers and directories that several tests share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parent / "fixtures"
SHOP = FIXTURES / "shop"
REAL = Path(os.environ.get("ITBENCH_GROUND_TRUTHS", Path(__file__).parents[3] / "shared" / "data" / "itbench"))

needs_real_files = pytest.mark.skipif(
    not REAL.is_dir(), reason="no ITBench files here: set ITBENCH_GROUND_TRUTHS to a directory of them"
)


def answer(
    *blamed: str, others: tuple[str, ...] = (), edges: tuple[tuple[str, str], ...] = (), why: str = ""
) -> dict[str, Any]:
    """A well-formed diagnosis."""
    return {
        "entities": [
            *({"name": name, "contributing_factor": True, "reasoning": why, "evidence": ""} for name in blamed),
            *({"name": name, "contributing_factor": False, "reasoning": "", "evidence": ""} for name in others),
        ],
        "propagations": [{"source": a, "target": b, "condition": "", "effect": ""} for a, b in edges],
        "alerts_explained": [],
    }


RIGHT = answer(
    "shop/ConfigMap/flags",
    others=("shop/Service/cart", "shop/Service/checkout", "shop/Service/frontend"),
    edges=(
        ("shop/ConfigMap/flags", "shop/Service/cart"),
        ("shop/Service/cart", "shop/Service/checkout"),
        ("shop/Service/checkout", "shop/Service/frontend"),
    ),
    why="The cartFailure feature flag was switched on in the flags ConfigMap.",
)

# Blames the root and a bystander, and leaves checkout out of the chain.
MIXED = answer(
    "shop/ConfigMap/flags",
    "shop/Deployment/redis",
    edges=(("shop/ConfigMap/flags", "shop/Pod/cart-6d5f7c9b8-x2v4z"), ("shop/Service/cart", "shop/Service/frontend")),
)

# Blames the first victim.
NEAR = answer("shop/Deployment/cart", edges=(("shop/Deployment/cart", "shop/Service/checkout"),))


def write_trial(outputs: Path, incident: str, trial: str, document: Any) -> Path:
    directory = outputs / incident / trial
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "agent_output.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return file


def itbench_eval(*arguments: object, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, in a process of its own and a clean environment."""
    return subprocess.run(
        [sys.executable, "-m", "itbench_evaluations", *map(str, arguments)],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
    )
