"""The freeze: the state of the cluster when the agent's access ended, and what others changed afterwards.

Grading takes minutes, and a system that is repaired meanwhile was not repaired when the agent said so. The agent's own
credentials no longer work, but it may have left something behind that acts for it: a pod with another account's token,
a CronJob, a webhook. So the objects that an operator can change are compared with their state at the freeze. Outside
the application's namespaces a cluster has other users; there only objects that the fault or the agent changed count.

Why it cannot be gamed: content is compared, not names of field managers, which any client may choose; a change that was
reverted in time shows in the generation or the resource version. Fields that the control plane itself writes are
excluded one by one, and what the harness wrote is known from its own client.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from srearena.conductor.grading.baseline import Baseline, Key, intent_of
from srearena.service.kubernetes import Kubernetes, Obj

_GENERATIONS = frozenset(("deployments.apps", "statefulsets.apps", "daemonsets.apps"))
_SCALED = frozenset(("deployments.apps", "statefulsets.apps"))
_BOUND = frozenset(("persistentvolumeclaims", "persistentvolumes"))
"""What the volume binder writes to."""
_PROVISIONED = "pv.kubernetes.io/provisioned-by"
_WITHOUT_STATUS = frozenset(
    """configmaps secrets services limitranges networkpolicies.networking.k8s.io roles.rbac.authorization.k8s.io
    rolebindings.rbac.authorization.k8s.io""".split()
)
"""Resources whose objects the control plane does not write to, so that every new version is a change by a client."""
Written = Mapping[str, Mapping[str, Any] | None]
"""What the harness wrote, by path; None where the new content is unknown or the object was deleted."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """What existed when the agent's access ended."""

    at: str
    """By the cluster's clock, in whole seconds."""
    state: Baseline
    namespaces: frozenset[str]
    """The application's."""
    touched: frozenset[Key]
    """What the fault or the agent has changed."""

    @classmethod
    def take(cls, api: Kubernetes, state: Baseline, earlier: Iterable[Baseline], namespaces: Iterable[str]) -> Freeze:
        """`earlier` are the states before the fault and when the agent came in."""
        touched = {difference.key for one in earlier for difference in one.differences(state)}
        return cls(api.now(), state, frozenset(namespaces), frozenset(touched))

    def late_changes(self, api: Kubernetes, now: Baseline, written: Written) -> list[str]:
        """Describe what neither the harness nor the control plane changed since the freeze, with the field managers."""
        found = []
        for key in sorted(self.state.objects.keys() | now.objects.keys()):
            resource, namespace, name = key
            if namespace not in self.namespaces and key not in self.touched:
                continue
            path = api.resource(resource).path(namespace, name)
            if path in written and written[path] is None:
                continue
            if how := self._how(key, now, written.get(path)):
                managers = self._late_managers(now.objects.get(key))
                location = f" in {namespace}" if namespace else ""
                by = f" by {', '.join(managers)}" if managers else ""
                kind = resource.partition(".")[0]
                found.append(f"{kind}/{name}{location} was {how} after the submission{by}")
        return found

    def _how(self, key: Key, now: Baseline, by_harness: Mapping[str, Any] | None) -> str:
        """How an object was changed; `by_harness` is its content as the harness last wrote it, if it did."""
        resource, before, after = key[0], self.state.objects.get(key), now.objects.get(key)
        if after is None:
            gone = before is None or bool(before["metadata"].get("deletionTimestamp")) or _is_provisioned(key, before)
            return "" if gone else "removed"
        expected = before if by_harness is None else {**by_harness, "kind": after["kind"]}
        if expected is None:
            return "" if _is_provisioned(key, after) else "added"
        scaled = resource in _SCALED and _autoscaled(now, expected, key)
        if _intent(expected, resource, scaled) != _intent(after, resource, scaled):
            return "changed"
        if by_harness is not None or scaled or before is None:
            return ""
        version = "generation" if resource in _GENERATIONS else "resourceVersion"
        counts = resource in _GENERATIONS or resource in _WITHOUT_STATUS
        reverted = counts and before["metadata"].get(version) != after["metadata"].get(version)
        return "changed and changed back" if reverted else ""

    def _late_managers(self, obj: Obj | None) -> list[str]:
        """The field managers of what was written since the freeze, without writes of the status."""
        entries = obj["metadata"].get("managedFields") or () if obj is not None else ()
        return sorted(
            {
                str(entry.get("manager", ""))
                for entry in entries
                if str(entry.get("time", "")) >= self.at and entry.get("subresource") != "status"
            }
        )


def _is_provisioned(key: Key, obj: Mapping[str, Any]) -> bool:
    """Whether a volume comes and goes with its claim."""
    return key[0] == "persistentvolumes" and _PROVISIONED in (obj["metadata"].get("annotations") or {})


def _autoscaled(state: Baseline, workload: Mapping[str, Any], key: Key) -> bool:
    """Whether an autoscaler may have set the replicas; it leaves alone what is scaled to zero."""
    _, namespace, name = key
    return workload["spec"].get("replicas") != 0 and any(
        ((scaler.get("spec") or {}).get("scaleTargetRef") or {}).get("name") == name
        for scaler in state.of("horizontalpodautoscalers.autoscaling", namespace=namespace)
    )


def _intent(obj: Mapping[str, Any], resource: str, scaled: bool) -> Any:
    """The object's intent without the fields that a controller sets: replicas, the volume and claim of a binding."""
    left_out = {"replicas"} if scaled else {"volumeName", "claimRef"} if resource in _BOUND else set[str]()
    spec = {field: value for field, value in (obj.get("spec") or {}).items() if field not in left_out}
    return intent_of({**obj, "spec": spec} if left_out else dict(obj))
