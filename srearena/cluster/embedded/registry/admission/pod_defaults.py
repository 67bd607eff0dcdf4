"""Small plug-ins that complete new pods and nodes.

A pod gets its priority, what its runtime costs and how long it tolerates a sick node; a node gets its first taint.
"""

from __future__ import annotations

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, dig, name_of
from srearena.cluster.embedded.quantity import parse
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.registry.strategies.scheduling import SYSTEM_CLASSES
from srearena.cluster.embedded.store import Store

_TOLERATED_SECONDS = 300
_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_SICK_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Priority(Plugin):
    """Turns a priority class into a number; there is at most one default class."""

    name = "Priority"

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, attributes: Attributes) -> None:
        if attributes.is_for("priorityclasses.scheduling.k8s.io", "DELETE") and attributes.name in SYSTEM_CLASSES:
            raise attributes.refusal("this is a system priority class and cannot be deleted")
        pod = attributes.obj
        if pod is None or not attributes.is_for("pods", "CREATE"):
            return
        spec = pod.setdefault("spec", {})
        value, policy = self._resolve(attributes, spec)
        if spec.get("priority") not in (None, value):
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise attributes.refusal(why)
        spec["priority"] = value
        if spec.get("preemptionPolicy") not in (None, policy):
            why = (
                f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise attributes.refusal(why)
        spec["preemptionPolicy"] = policy

    def _resolve(self, attributes: Attributes, spec: Obj) -> tuple[int, str]:
        name = spec.get("priorityClassName")
        if name:
            found = self._store.get("priorityclasses.scheduling.k8s.io", "", name)
            if found is None:
                raise attributes.refusal(f"no PriorityClass with name {name} was found")
        else:
            found = self._default()
            if found is None:
                return 0, "PreemptLowerPriority"
            spec["priorityClassName"] = name_of(found)
        return found["value"], found.get("preemptionPolicy") or "PreemptLowerPriority"

    def _default(self) -> Obj | None:
        classes = [c for c in self._store.objects("priorityclasses.scheduling.k8s.io") if c.get("globalDefault")]
        return min(classes, key=lambda c: int(c["value"]), default=None)

    def validate(self, attributes: Attributes) -> None:
        if not attributes.is_for("priorityclasses.scheduling.k8s.io", "CREATE", "UPDATE") or attributes.obj is None:
            return
        other = self._default()
        if attributes.obj.get("globalDefault") and other is not None and name_of(other) != attributes.name:
            problem = f"PriorityClass {name_of(other)} is already marked as default. Only one default can exist"
            raise attributes.refusal(problem)


class RuntimeClass(Plugin):
    """A pod of a runtime class carries what the class costs, and goes where the class can run."""

    name = "RuntimeClass"

    def __init__(self, store: Store) -> None:
        self._store = store

    def _of(self, attributes: Attributes, pod: Obj) -> Obj:
        name = dig(pod, "spec", "runtimeClassName")
        if name is None:
            return {}
        found = self._store.get("runtimeclasses.node.k8s.io", "", name)
        if found is None:
            raise attributes.refusal(f"pod rejected: RuntimeClass {quoted(name)} not found")
        return found

    def admit(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or not attributes.is_for("pods", "CREATE"):
            return
        runtime, spec = self._of(attributes, pod), pod["spec"]
        if runtime.get("overhead"):
            if spec.get("overhead") and not _same(spec["overhead"], dig(runtime, "overhead", "podFixed", default={})):
                raise attributes.refusal(_OTHER_OVERHEAD)
            spec["overhead"] = dict(dig(runtime, "overhead", "podFixed", default={}))
        scheduling = runtime.get("scheduling") or {}
        selector = dict(spec.get("nodeSelector") or {})
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            if selector.setdefault(key, value) != value:
                raise attributes.refusal(
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}"
                )
        if selector:
            spec["nodeSelector"] = selector
        tolerations = [*(spec.get("tolerations") or ())]
        tolerations += [t for t in scheduling.get("tolerations") or () if t not in tolerations]
        if tolerations:
            spec["tolerations"] = tolerations

    def validate(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or not attributes.is_for("pods", "CREATE"):
            return
        runtime, own = self._of(attributes, pod), dig(pod, "spec", "overhead")
        if runtime.get("overhead"):
            if not _same(own or {}, dig(runtime, "overhead", "podFixed", default={})):
                raise attributes.refusal(_OTHER_OVERHEAD)
        elif own is not None:
            why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise attributes.refusal(why)


def _same(one: dict[str, str], other: dict[str, str]) -> bool:
    return {name: parse(value) for name, value in one.items()} == {name: parse(value) for name, value in other.items()}


class DefaultTolerationSeconds(Plugin):
    """A pod stays five minutes on a node that stopped answering, unless it says otherwise."""

    name = "DefaultTolerationSeconds"

    def admit(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or not attributes.is_for("pods", "CREATE", "UPDATE"):
            return
        tolerations = dig(pod, "spec", "tolerations", default=())
        missing = [key for key in _SICK_NODE_TAINTS if not any(_covers(t, key) for t in tolerations)]
        if missing:
            pod["spec"]["tolerations"] = [
                *tolerations,
                *(
                    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
                    for key in missing
                ),
            ]


def _covers(toleration: Obj, key: str) -> bool:
    return toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")


class TaintNodesByCondition(Plugin):
    """A new node starts tainted, until its conditions are known."""

    name = "TaintNodesByCondition"

    def admit(self, attributes: Attributes) -> None:
        node = attributes.obj
        if node is None or not attributes.is_for("nodes", "CREATE"):
            return
        spec = node.setdefault("spec", {})
        taints = spec.get("taints") or []
        if all(taint.get("key") != "node.kubernetes.io/not-ready" for taint in taints):
            spec["taints"] = [*taints, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
