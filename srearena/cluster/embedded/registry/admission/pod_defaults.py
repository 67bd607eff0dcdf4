"""Small plug-ins that complete a new pod: its priority, how long it tolerates a sick node, and a new node's taint."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, dig, name_of
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.store import Store

_TOLERATED_SECONDS = 300
_SICK_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Priority(Plugin):
    """Turns a priority class into a number; there is at most one default class."""

    name = "Priority"

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, attributes: Attributes) -> None:
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
        spec.setdefault("preemptionPolicy", policy)

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


class DefaultTolerationSeconds(Plugin):
    """A pod stays five minutes on a node that stopped answering, unless it says otherwise."""

    name = "DefaultTolerationSeconds"

    def admit(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or not attributes.is_for("pods", "CREATE"):
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
