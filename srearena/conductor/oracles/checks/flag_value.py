"""A feature flag has its healthy value again, by the flag service itself.

Why it cannot be gamed: a pod of the harness asks flagd. Programs that cannot reach flagd use their defaults, so a
network policy, another address or a stopped flagd would end the symptoms while the flag is still on; each of them
leaves flagd's own answer as it was, or gives none. That the flagd that answers is the declared one is the subject of
`backends`, that the value lasts that of `lasting`, and that users feel it that of the requests.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.probing import ProbeFailed, run_probe

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_ADDRESS = "http://flagd:8016/ofrep/v1/evaluate/flags"


class FlagValue(Check):
    """flagd evaluates a flag as it did on the healthy system, or does not offer it."""

    name = "flag"

    def __init__(self, flag: str) -> None:
        self._flag = flag

    def record_baseline(self, problem: Problem) -> Any:
        return self._value(problem)

    def complaints(self, problem: Problem) -> list[str]:
        if not problem.fault_injected:
            return []
        try:
            value = self._value(problem)
        except ProbeFailed as failed:
            return [str(failed)]
        healthy = self.baseline_value(problem)
        # Without the flag, or with the flag disabled, programs use their defaults, which are the healthy values.
        return [] if value in (healthy, None) else [f"the flag {self._flag} is {value}, and was {healthy}"]

    def _value(self, problem: Problem) -> Any:
        """The value by OFREP; None where there is no such flag."""
        ask = f"wget -q -T 10 -O - --header 'content-type: application/json' --post-data '{{}}' {_ADDRESS}"
        for line in run_probe(problem, f"{ask} || echo no answer").splitlines():
            try:
                flags = {one["key"]: one.get("value") for one in json.loads(line)["flags"]}
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                continue  # not an answer of flagd
            return flags.get(self._flag)
        raise ProbeFailed("flagd does not answer")
