"""Programs whose service account may not do what they ask the API server for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.hypotheses import Hypothesis, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, name_of, namespace_of, path_of

_FORBIDDEN = re.compile(
    r'User "system:serviceaccount:([^:"]+):([^"]+)" cannot (\w+) resource "([^"]+)" in API group "([^"]*)"'
)


@runbook
def forbidden(system: System) -> Iterator[Hypothesis]:
    """Its log names the right that is missing; a Role is bound to the account, and lacks it."""
    texts = [(name_of(one), system.logs_of(name_of(one))) for one in system.workloads]
    texts += [(system.owner_of(str(about.get("name"))), message) for about, _, message in system.warnings()]
    wanted: dict[tuple[str, str], tuple[str, set[tuple[str, str, str]]]] = {}
    for owner, text in texts:
        for space, account, verb, resource, group in _FORBIDDEN.findall(text):
            wanted.setdefault((space, account), (owner, set()))[1].add((verb, resource, group))
    for (space, account), (owner, rights) in sorted(wanted.items()):
        roles = _roles(system, space, account)
        if not roles:
            bindings = [one for one in system.own("rolebindings") if namespace_of(one) == space]
            near = [one for one in bindings if account in name_of(one)]
            for binding in near[:1]:
                subject = {"kind": "ServiceAccount", "name": account, "namespace": space}
                yield Hypothesis(
                    path_of(binding),
                    f"it does not bind {account}, which is refused by the API server",
                    Strength.CONFIRMED,
                    [commands.patch(binding, [(("subjects",), [subject])])],
                    frozenset({owner}),
                )
            continue
        role = roles[0]
        verbs: dict[tuple[str, str], set[str]] = {}
        for verb, resource, group in rights:
            verbs.setdefault((group, resource), set()).update({verb, "get", "list", "watch"})
        added = [
            {"apiGroups": [group], "resources": [resource], "verbs": sorted(names)}
            for (group, resource), names in sorted(verbs.items())
        ]
        workload = system.workload(owner)
        restart = [commands.restart(workload)] if workload is not None else []
        yield Hypothesis(
            path_of(role),
            f"{owner} is refused by the API server: {', '.join(' '.join(one[:2]) for one in sorted(rights))}",
            Strength.CONFIRMED,
            [commands.patch(role, [(("rules",), [*(role.get("rules") or ()), *added])]), *restart],
            frozenset({owner, name_of(role)}),
        )


def _roles(system: System, space: str, account: str) -> list[Obj]:
    """The Roles that are bound to a service account."""
    found = []
    for binding in system.all("rolebindings"):
        subjects = binding.get("subjects") or ()
        if namespace_of(binding) == space and any(
            one["kind"] == "ServiceAccount" and one["name"] == account for one in subjects
        ):
            role = system.find("roles", str(binding["roleRef"]["name"]), space)
            if role is not None:
                found.append(role)
    return found
