"""The agent's loop: observe, form hypotheses, answer, repair, verify. A generator that yields actions, receives states.

Every action comes with a sentence that says why; both are in the transcript of the trial. Objects are read with the
agent's own kubeconfig, everything else through the actions that every agent has, all changes included.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path

from clients.rules import recording
from clients.rules.hypotheses import Hypothesis, Repair, Strength, conclude
from clients.rules.runbooks import examine
from clients.rules.signals import QUERY, parse
from clients.rules.suspects import TOOLS
from clients.rules.system import Alert, System, name_of, namespace_in, read_logs, read_system
from clients.rules.topology import calls
from srearena.service.kubernetes import Kubernetes

_ROUNDS = 4  # of repairs; chosen: later rounds handle what the first one uncovers, or try another repair
_SETTLE, _LINGER = 90, 180
"""Seconds until pods are replaced and ready, and until alerts that look back some minutes are resolved."""
_MOST_LOGS = 15
"""Workloads whose logs are read."""
_ENTRIES = ("front", "gateway", "nginx", "web", "proxy")
"""Words in the names of services that users call."""
Dialogue = Generator[str, str, None]


def block(text: str, thought: str = "") -> str:
    return f"{thought}\n```\n{text}\n```" if thought else f"```\n{text}\n```"


class RulesAgent:
    """An agent with general runbooks instead of a model; independent of applications and problems."""

    def __init__(self) -> None:
        self._namespace = "default"
        self._kubeconfig: Path | None = None
        self._dialogue: Dialogue | None = None
        self._recorded = False
        self._system = System("default")
        self._first: System | None = None
        self._hypotheses: list[Hypothesis] = []
        self._traces = ""

    def connect(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def init_context(self, description: str, instructions: str, actions: Mapping[str, str]) -> None:
        self._namespace = namespace_in(description)
        self._recorded = all(tool in actions for tool in TOOLS) and "kubectl" not in actions

    async def get_action(self, state: str) -> str:
        if self._dialogue is None:
            self._dialogue = recording.investigate() if self._recorded else self._work(state)
            return next(self._dialogue)
        return self._dialogue.send(state)

    # Stages

    def _work(self, question: str) -> Dialogue:
        """Answer the questions of all stages."""
        yield from self._observe()
        while True:
            if "Yes or No" in question:
                answer = "Yes" if self._hypotheses or self._system.alerts else "No"
                question = yield block(f'submit("{answer}")', self._summary())
                if "Yes or No" in question:  # the same question again: the system may have changed
                    yield from self._observe()
            elif "Which components" in question:
                names = [one.culprit for one in self._hypotheses]
                question = yield block(f"submit({json.dumps(names)})", self._summary())
            elif "What kind of fault" in question:
                kind = self._hypotheses[0].kind if self._hypotheses else "None"
                level = "Virtualization" if self._hypotheses else "None"
                question = yield block(f"submit({json.dumps({'system_level': level, 'fault_type': kind})})")
            elif "What happened" in question:
                entities = [{"name": one.culprit, "contributing_factor": True} for one in self._hypotheses]
                question = yield block(f"submit({ {'entities': entities}!r})")
            else:
                yield from self._repair()
                question = yield block("submit()", self._summary())

    def _summary(self) -> str:
        """The present hypotheses in words."""
        if not self._hypotheses:
            return f"No hypothesis; {len(self._system.alerts)} alerts fire."
        return "\n".join(f"{one.strength.name.lower()}: {one.culprit}: {one.why}" for one in self._hypotheses[:8])

    # Observation

    def _observe(self) -> Dialogue:
        """Read the system, and draw conclusions."""
        assert self._kubeconfig is not None, "the agent needs its kubeconfig"
        alerts = Alert.parse((yield block("get_alerts()", "What fires now, beside the objects that I read?")))
        with Kubernetes(self._kubeconfig) as api:
            system = read_system(api, self._namespace, self._first)
            system.alerts = alerts
            read_logs(api, system, [*sorted(system.suffering)[:_MOST_LOGS], *_outsiders(system)[:_MOST_LOGS]])
        if alerts and not self._traces:
            listed = yield block("get_traces()", "Which services call which?")
            known = [name.strip() for name in listed.partition(":")[2].split(",") if name.strip()]
            entry = next((name for word in _ENTRIES for name in known if word in name), known[0] if known else "")
            if entry:
                self._traces = yield block(f"get_traces({entry!r}, minutes=30, limit=20)")
        system.signals = parse(
            (yield block(f"get_metrics({QUERY!r})", "Does anything stand out that no alert is about?"))
        )
        self._system = system
        self._first = self._first or system
        self._hypotheses = conclude(examine(system), calls(system, self._traces))

    # Repair

    def _repair(self) -> Dialogue:
        """Repair, verify, take back what did not help, and go on with what is still wrong."""
        tried: set[str] = set()
        for _ in range(_ROUNDS):
            plans = [(one, plan) for one in self._hypotheses if (plan := self._next_plan(one, tried))]
            if not plans:
                return
            tried |= {_text(plan) for _, plan in plans}
            before = self._trouble()
            thought = "\n".join(f"I repair {one.culprit}, because {one.why}" for one, _ in plans)
            commands = dict.fromkeys(repair.command for _, plan in plans for repair in plan)
            yield block("\n".join(commands), thought[:2000])
            yield block(f"wait({_SETTLE})", "New pods need a moment.")
            yield from self._observe()
            if self._trouble() and not self._plans_left(tried):
                yield block(f"wait({_LINGER})", "Alerts look back some minutes.")
                yield from self._observe()
            yield from self._take_back(plans, before)
            if not self._trouble():
                return

    def _trouble(self) -> set[str]:
        """What suffers, by name; empty where all is well."""
        certain = {one.culprit for one in self._hypotheses if one.strength > Strength.SYMPTOM}
        unready = {name_of(one) for one in self._system.workloads if self._system.unready(one)}
        return certain | unready | {f"{alert.name} {alert.subject}" for alert in self._system.alerts}

    def _next_plan(self, hypothesis: Hypothesis, tried: set[str]) -> list[Repair]:
        return next((plan for plan in hypothesis.plans if plan and _text(plan) not in tried), [])

    def _plans_left(self, tried: set[str]) -> bool:
        return any(self._next_plan(one, tried) for one in self._hypotheses)

    def _take_back(self, plans: Iterable[tuple[Hypothesis, list[Repair]]], before: set[str]) -> Dialogue:
        """Undo guesses that changed nothing; what an object itself contradicts stays repaired."""
        if before - self._trouble():
            return
        undo = [
            repair.undo
            for one, plan in plans
            if one.strength is not Strength.CONFIRMED
            for repair in reversed(plan)
            if repair.undo
        ]
        if undo:
            yield block("\n".join(undo), "Nothing got better: I take it back.")


def _outsiders(system: System) -> list[str]:
    """Workloads that no Service leads to: controllers, consumers and tools, which no caller complains about."""
    served = {name_of(one) for service in system.own("services") for one in system.behind(service)}
    return sorted({name_of(one) for one in system.workloads} - served - system.suffering)


def _text(plan: Iterable[Repair]) -> str:
    return "\n".join(repair.command for repair in plan)
