"""The published JSON Schemas, written from the models by `itbench-eval schema --write`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from itbench_evaluations.agent_output import AgentOutput
from itbench_evaluations.result_schema import ResultDocument

DIRECTORY = Path(__file__).parent
MODELS: dict[str, type[BaseModel]] = {"agent_output": AgentOutput, "result": ResultDocument}


def schema(name: str) -> dict[str, Any]:
    """The schema of a model, as published."""
    body = MODELS[name].model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{name}.schema.json", **body}


def text(name: str) -> str:
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


def write() -> list[Path]:
    """Bring the published files up to date."""
    paths = []
    for name in MODELS:
        path = DIRECTORY / f"{name}.schema.json"
        path.write_text(text(name), encoding="utf-8")
        paths.append(path)
    return paths
