"""The estimate of what a rule may cost, compared with the real server's, and what is refused because of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from srearena.cluster.embedded.registry.schema_fields import with_metadata
from srearena.cluster.embedded.registry.schema_rules import Rule, RuleNode, type_of
from srearena.cluster.embedded.registry.schema_sizes import declared

RECORDED = json.loads((Path(__file__).parent / "recorded" / "estimates.json").read_text())["cases"]
TOTAL = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
HINT = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


@pytest.mark.parametrize("case", range(len(RECORDED)))
def test_estimates_are_those_of_the_real_server(case: int) -> None:
    recorded = RECORDED[case]
    schema = with_metadata(recorded["schema"])
    kind, sizes = type_of(schema), declared(schema)
    assert kind is not None and sizes is not None
    assert sizes.repetitions == recorded["repetitions"]
    found = {rule: Rule({"rule": rule}, kind).costs(sizes)[0] for rule in recorded["costs"]}
    assert found == recorded["costs"]


def schema_of(rule: str, **limits: int) -> dict[str, Any]:
    names = {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}, **limits}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {"names": names}}}}


def problems(schema: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in RuleNode(schema, root=True).all_problems("schema")]


def test_a_rule_that_may_cost_too_much_is_refused() -> None:
    place = "schema.properties[spec].properties[names].items.x-kubernetes-validations[0].rule"
    found = problems(schema_of("self.contains('abc')"))
    assert found == [
        f"{place}: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {HINT}",
        f"{place}: Forbidden: {TOTAL}",
        "schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds "
        f"budget by factor of more than 100x {HINT}",
    ]
    assert not problems(schema_of("self.contains('abc')", maxItems=20))
    assert not problems(schema_of("self == 'abc'", maxItems=1000))


def test_the_factor_is_worded_by_its_size() -> None:
    (found,) = problems(schema_of("self.contains('abc')", maxItems=32))
    assert "budget by factor of 1.006637x " in found
    (found,) = problems(schema_of("self.contains('abc')", maxItems=100))
    assert "budget by factor of 3.1x " in found


def test_a_computed_message_has_a_cost_too() -> None:
    schema = schema_of("true", maxItems=1)
    names = schema["properties"]["spec"]["properties"]["names"]
    names["items"]["x-kubernetes-validations"] = [{"rule": "true", "messageExpression": "self.replace('', self)"}]
    assert not problems(schema)
    names["items"]["x-kubernetes-validations"][0]["messageExpression"] = "self.replace('', self).replace('a', 'b')"
    (found,) = [problem for problem in problems(schema) if "contributed" not in problem and "total" not in problem]
    assert "messageExpression: Forbidden: estimated messageExpression cost exceeds budget" in found
