"""Which expressions of the public monitoring mixins (kubernetes-mixin, node-mixin) give data here.

    python -m benchmarks.mixins EXPRESSIONS.json [--app hotel_reservation] [--minutes 20] [--missing]

The file is a list of objects with `mixin`, `kind` (alerts, rules, dashboards), `group`, `name` and `expr`. An
application runs under load beside one of each object that alerts are about, some of them failing (`OBJECTS`). The
recording rules of the file are evaluated over that history, then

- a dashboard expression counts where it gives at least one value. A variable stands for any value; panels of other
  operating systems (Windows, macOS, AIX) are left out;
- an alert counts where it can be evaluated: every selector in it finds series by name and by the labels that say whose
  series they are (`job`, `metrics_path`). Matchers of a state (`reason`, `condition`) are left out, since a healthy
  cluster need not have a series of it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from srearena.cluster import Cluster, start_embedded
from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules
from srearena.cluster.embedded.telemetry.alerts.rule_files import read_rules
from srearena.cluster.embedded.telemetry.metrics.promql.engine import Engine
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import (
    Aggregation,
    Call,
    Node,
    Operation,
    Parenthesis,
    RangeSelector,
    Selector,
    Sign,
    Subquery,
)
from srearena.cluster.embedded.telemetry.metrics.promql.parsing import parse
from srearena.cluster.embedded.telemetry.metrics.promql.values import Scalar, Vector
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.in_process import InProcessCluster
from srearena.service.apps import find_application
from srearena.service.errors import ApiRefused
from srearena.service.kubernetes import Kubernetes

Entry = Mapping[str, str]
OTHER_SYSTEMS = ("windows", "darwin", "aix")
_VARIABLE = re.compile(r'(=~?|!=)\s*"\$(\w+)"')
_VALUES = {"cluster": '=~".*"', "volume": '="data-store-0"'}
"""Variables with a value of their own: there is no cluster label, and panels of a volume are about a single one."""
_INTERVAL = 30.0
"""Seconds between evaluations of rules."""
_IDENTITY = ("job", "metrics_path")
"""Labels that say whose series they are."""


def filled_in(expression: str) -> str:
    """Return a dashboard's expression with its variables filled in: any value where it may have several."""

    def value(match: re.Match[str]) -> str:
        return _VALUES.get(match[2], '=~".+"')

    # Panels that hide zeros count where the series exists.
    expression = expression.removesuffix(" != 0")
    return _VARIABLE.sub(value, expression).replace("$__rate_interval", "4m").replace("$__interval", "1m")


def selectors(node: Node) -> Iterator[str]:
    """Yield the selectors of an expression, each by its name and the labels of its target.

    What `unless` excludes need not exist: alerts exclude objects with a label of the user's choice.
    """
    match node:
        case Selector(matchers):
            kept = [matcher for matcher in matchers if matcher.name in ("__name__", *_IDENTITY)]
            yield "{" + ", ".join(f"{one.name}{one.operator}{json.dumps(one.value)}" for one in kept) + "}"
        case RangeSelector(inner) | Subquery(inner) | Parenthesis(inner) | Sign(_, inner):
            yield from selectors(inner)
        case Call(_, arguments):
            for argument in arguments:
                yield from selectors(argument)
        case Aggregation(_, inner, parameter):
            yield from selectors(inner)
            if parameter is not None:
                yield from selectors(parameter)
        case Operation(operator, left, right):
            yield from selectors(left)
            if operator != "unless":
                yield from selectors(right)


def uncommented(expression: str) -> str:
    """Return an expression without its comments: since white space is folded, nothing else ends them."""
    return re.sub(r"#[^()]*?(?=\(|sum by)", "", expression)


def rule_labels(entry: Entry) -> dict[str, str]:
    """Return the static labels of a recording rule, which the file does not contain, from its expression."""
    name, expression = entry["name"], entry["expr"]
    if name.startswith(
        ("apiserver_request:", "code:apiserver_request", "code_resource:apiserver", "cluster_quantile:")
    ):
        reads, writes = 'LIST|GET"' in expression, 'POST|PUT|PATCH|DELETE"' in expression
        labels = {"verb": "all" if reads == writes else "read" if reads else "write"}
        if reads == writes and name != "apiserver_request:availability30d":
            labels = {}
    else:
        labels = {}
    quantile = re.match(r"histogram_quantile\(([\d.]+)", expression)
    if quantile is not None:
        labels["quantile"] = quantile[1]
    if name == "namespace_workload_pod:kube_pod_owner:relabel":
        kinds = ("ReplicaSet", "DaemonSet", "StatefulSet", "Job")
        labels["workload_type"] = next((kind.lower() for kind in kinds if f'"{kind}"' in expression), "other")
    return labels


class Measurement:
    def __init__(self, store: MetricStore, now: float, entries: Sequence[Entry]) -> None:
        self._engine = Engine(store)
        self._at = int(now * 1000)
        rules = Rules(store, read_rules(yaml.safe_dump(_rule_file(entries)), "mixins"))
        # Rules of the API server's availability read what later rules of their group record, at the next instant.
        for moment in (now - 4 * _INTERVAL, now - 3 * _INTERVAL, now - 2 * _INTERVAL, now - _INTERVAL, now):
            rules.catch_up(moment)

    def gives_data(self, expression: str) -> bool:
        value = self._engine.instant(expression, self._at)
        return isinstance(value, Scalar) or (isinstance(value, Vector) and bool(value.present.any()))

    def problem(self, entry: Entry) -> str:
        """Return why an entry does not count; empty if it does."""
        try:
            if entry["kind"] == "dashboards":
                return "" if self.gives_data(filled_in(uncommented(entry["expr"]))) else "no data"
            missing = [
                selector for selector in selectors(parse(uncommented(entry["expr"]))) if not self.gives_data(selector)
            ]
            return f"no series: {', '.join(missing)}" if missing else ""
        except QueryError as error:
            return f"error: {error}"


def _rule_file(entries: Sequence[Entry]) -> dict[str, object]:
    groups: dict[str, list[dict[str, object]]] = {}
    for entry in entries:
        if entry["kind"] == "rules" and not any(name in entry["group"] for name in OTHER_SYSTEMS):
            rule = {"record": entry["name"], "expr": uncommented(entry["expr"]), "labels": rule_labels(entry)}
            groups.setdefault(entry["group"], []).append(rule)
    return {
        "groups": [{"name": name, "interval": f"{_INTERVAL:.0f}s", "rules": rules} for name, rules in groups.items()]
    }


def counted(entries: Sequence[Entry]) -> list[Entry]:
    return [
        entry
        for entry in entries
        if entry["kind"] in ("alerts", "dashboards") and not any(name in entry["group"] for name in OTHER_SYSTEMS)
    ]


OBJECTS = """
apiVersion: v1
kind: Namespace
metadata: {name: subjects}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: subjects}
spec: {hard: {requests.cpu: "8", requests.memory: 8Gi, pods: "50"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: subjects}
spec: {limits: [{type: Container, defaultRequest: {cpu: 10m, memory: 16Mi}}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: subjects}
spec:
  serviceName: store
  replicas: 2
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      containers:
      - {name: main, image: "nginx:1.27", volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: store, namespace: subjects}
spec: {minAvailable: 1, selector: {matchLabels: {app: store}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: store, namespace: subjects}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: store}
  minReplicas: 2
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: failing, namespace: subjects}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "busybox:1.36", command: [sh, -c, exit 1]}]
---
apiVersion: v1
kind: Pod
metadata: {name: crashing, namespace: subjects}
spec: {containers: [{name: main, image: "busybox:1.36", command: [sh, -c, exit 1]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: missing-image, namespace: subjects}
spec: {containers: [{name: main, image: "registry.invalid/missing:1"}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: unreachable}
webhooks:
- name: unreachable.subjects.example
  clientConfig: {service: {name: missing, namespace: subjects}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: subjects}}
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: v1
kind: Pod
metadata: {name: filling, namespace: subjects}
spec:
  nodeName: control-plane  # whose kubelet is not restarted below
  containers:
  - name: main
    image: busybox:1.36
    command: [sh, -c, "dd if=/dev/zero of=/file bs=1M count=20; sleep 3600"]
    resources: {limits: {ephemeral-storage: 10Mi}}
"""
"""One of each kind of object that alerts are about; some fail, so that counters of failures exist."""


def fail_requests(cluster: Cluster, api: Kubernetes, namespace: str) -> None:
    """Send requests that fail, for the panels of errors: the object, a webhook or a kubelet is not there."""
    api.find("pods", "missing", namespace)
    pod = api.list("pods", namespace, fields="status.phase=Running")[0]
    cluster.nodes.perform("stop_kubelet", pod["spec"]["nodeName"])
    for request in (
        lambda: api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "refused"}}, "subjects"),
        lambda: api.logs(pod["metadata"]["name"], namespace),
    ):
        try:
            request()
        except ApiRefused:
            continue
        raise SystemExit("a request that should have failed did not")
    cluster.nodes.perform("start_kubelet", pod["spec"]["nodeName"])


def measure(entries: Sequence[Entry], app_name: str, minutes: float) -> list[tuple[Entry, str]]:
    """Return the entries that count, each with its problem."""
    app = find_application(app_name)
    models = [app.folder] if app.model_path is not None else []
    with start_embedded(models=models, in_process=True, seed=1, behind=60 * minutes + 300) as cluster:
        assert isinstance(cluster, InProcessCluster)
        app.deploy(cluster)
        app.wait_until_ready(cluster)
        app.start_workload(cluster)
        with Kubernetes.of(cluster) as api:
            for obj in yaml.safe_load_all(OBJECTS):
                api.create(obj)
                # A namespace has a service account a moment later.
                cluster.wait(1)
            cluster.wait(60 * minutes)
            fail_requests(cluster, api, app.namespace)
        cluster.wait(120)
        assembly = cluster._thread.host.assembly
        measurement = Measurement(assembly.telemetry.metrics, assembly.world.clock.now, entries)
        return [(entry, measurement.problem(entry)) for entry in counted(entries)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("expressions", type=Path, help="the expressions, as JSON")
    parser.add_argument("--app", default="hotel_reservation", help="the application that runs meanwhile")
    parser.add_argument("--minutes", type=float, default=20.0, help="virtual minutes under load")
    parser.add_argument("--missing", action="store_true", help="print every expression that does not count, and why")
    options = parser.parse_args()
    results = measure(json.loads(options.expressions.read_text()), options.app, options.minutes)
    total = Counter((entry["mixin"], entry["kind"]) for entry, _ in results)
    good = Counter((entry["mixin"], entry["kind"]) for entry, problem in results if not problem)
    if options.missing:
        for entry, problem in results:
            if problem:
                print(f"{entry['mixin']} {entry['group']} {entry['name']}: {problem}\n    {entry['expr']}")
    for (mixin, kind), number in sorted(total.items()):
        print(f"{mixin} {kind}: {good[mixin, kind]} of {number} ({good[mixin, kind] / number:.1%})")


if __name__ == "__main__":
    main()
