"""The agent's loop: observe, answer, repair, observe again. A generator that yields actions and receives states."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping

from clients.rules import recording
from clients.rules.findings import Finding, conclude, is_unhealthy
from clients.rules.observations import QUERIES, World, command, namespace_in, read_alerts
from clients.rules.suspects import TOOLS

_ROUNDS = 2  # of repairs; chosen: a second round handles what the first one uncovers
Dialogue = Generator[str, str, None]


def block(text: str) -> str:
    return f"```\n{text}\n```"


class RulesAgent:
    """An agent with general runbooks instead of a model; independent of applications and problems."""

    def __init__(self) -> None:
        self._namespace = "default"
        self._dialogue: Dialogue | None = None
        self._recorded = False

    def init_context(self, description: str, instructions: str, actions: Mapping[str, str]) -> None:
        self._namespace = namespace_in(description)
        self._recorded = all(tool in actions for tool in TOOLS) and "kubectl" not in actions

    async def get_action(self, state: str) -> str:
        if self._dialogue is None:
            self._dialogue = recording.investigate() if self._recorded else self._work(state)
            return next(self._dialogue)
        return self._dialogue.send(state)

    def _work(self, question: str) -> Dialogue:
        """Answer the questions of all stages."""
        world = World(self._namespace)
        yield from self._observe(world)
        findings = conclude(world)
        while True:
            if "Yes or No" in question:
                suspicious = is_unhealthy(world) or any(finding.rank >= 2 for finding in findings)
                question = yield block('submit("Yes")' if suspicious else 'submit("No")')
                if "Yes or No" in question:  # the same question again: the system may have changed
                    yield from self._observe(world)
                    findings = conclude(world)
            elif "Which components" in question:
                question = yield block(f"submit({json.dumps([finding.component for finding in findings])})")
            elif "What kind of fault" in question:
                kind = findings[0].kind if findings else "None"
                answer = {"system_level": "Virtualization" if findings else "None", "fault_type": kind}
                question = yield block(f"submit({json.dumps(answer)})")
            elif "What happened" in question:
                entities = [
                    {"name": f"{self._namespace}/Deployment/{f.component}", "contributing_factor": True}
                    for f in findings
                ]
                question = yield block(f"submit({json.dumps({'entities': entities}).replace('true', 'True')})")
            else:
                yield from self._repair(world, findings)
                question = yield block("submit()")

    def _observe(self, world: World) -> Dialogue:
        for template, read in QUERIES:
            read(world, (yield command(template, world.namespace)))
        read_alerts(world, (yield block("get_alerts()")))

    def _repair(self, world: World, findings: list[Finding]) -> Dialogue:
        for _ in range(_ROUNDS):
            repairs = list(dict.fromkeys(repair for finding in findings for repair in finding.repairs))
            if not repairs:
                return
            for repair in repairs[:6]:
                yield block(repair)
            yield block("wait(60)")
            yield from self._observe(world)
            findings = [finding for finding in conclude(world) if finding.rank >= 2]
