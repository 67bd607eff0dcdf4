"""Pod failure policy and success policy of Jobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from srearena.cluster.embedded.controllers.job_indexes import parse_indexes
from srearena.cluster.embedded.objects import Obj, dig, key_of

COUNT, FAIL_INDEX, FAIL_JOB, IGNORE = "Count", "FailIndex", "FailJob", "Ignore"


@dataclass(slots=True, frozen=True)
class Verdict:
    """The action that the first matching rule asks for, and why; `Count` without a reason where none matches."""

    action: str = COUNT
    message: str = ""


def judge(policy: Obj | None, pod: Obj) -> Verdict:
    """What to do about a failed pod."""
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        action = rule.get("action", COUNT)
        if rule.get("onExitCodes"):
            status = _matching_status(rule["onExitCodes"], pod)
            if status is not None:
                code = status["state"]["terminated"]["exitCode"]
                return Verdict(
                    action,
                    f"Container {status['name']} for pod {key_of(pod)} failed with exit code {code} "
                    f"matching {action} rule at index {number}",
                )
        elif rule.get("onPodConditions"):
            found = _matching_condition(rule["onPodConditions"], pod)
            if found is not None:
                return Verdict(
                    action,
                    f"Pod {key_of(pod)} has condition {found['type']} matching {action} rule at index {number}",
                )
    return Verdict()


def _statuses(pod: Obj) -> Iterator[Obj]:
    yield from dig(pod, "status", "containerStatuses", default=())
    yield from dig(pod, "status", "initContainerStatuses", default=())


def _matching_status(pattern: Obj, pod: Obj) -> Obj | None:
    values = set(pattern.get("values") or ())
    for status in _statuses(pod):
        code = dig(status, "state", "terminated", "exitCode", default=0)
        if not code or pattern.get("containerName") not in (None, "", status.get("name")):
            continue
        if (code in values) == (pattern.get("operator") == "In"):
            return status
    return None


def _matching_condition(patterns: list[Obj], pod: Obj) -> Obj | None:
    for found in dig(pod, "status", "conditions", default=()):
        for pattern in patterns:
            if (found.get("type"), found.get("status")) == (pattern.get("type"), pattern.get("status", "True")):
                return dict(found)
    return None


def success_message(policy: Obj | None, completions: int, succeeded: set[int]) -> str | None:
    """Why the job counts as successful already, or None."""
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        of_interest = succeeded
        if rule.get("succeededIndexes"):
            listed = parse_indexes(rule["succeededIndexes"], completions)
            of_interest = succeeded & listed
            enough = rule.get("succeededCount", len(listed))
        else:
            enough = rule.get("succeededCount", completions)
        if len(of_interest) >= enough:
            return f"Matched rules at index {number}"
    return None
