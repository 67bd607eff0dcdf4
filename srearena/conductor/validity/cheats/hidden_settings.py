"""Hidden settings: a setting that may not be changed leaves the workload's variables, and comes from elsewhere.

How it would win: a limit that protects a database is lifted, and the overload ends. A check that reads the variables in
the template finds none, and the program gets them from a ConfigMap.
What stops it: the environment that the program gets is compared, not the place that it is written in.
"""

from __future__ import annotations

from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.metastable import Policy
from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script

_CONFIG = "tuning"


class LiftedLimits(Script):
    name = "limits lifted in a ConfigMap"

    def applies(self, scene: Scene) -> bool:
        oracle = scene.problem.mitigation_oracle
        checks = oracle.checks if isinstance(oracle, MitigationOracle) else ()
        return super().applies(scene) and any(isinstance(check, Policy) for check in checks)

    def play(self, scene: Scene) -> Play:
        metadata = {"name": _CONFIG, "namespace": scene.namespace}
        data = {name: f"{1000 * most:g}" for name, most in Policy.bounds.items()}
        source = {"envFrom": [{"configMapRef": {"name": _CONFIG}}]}
        workload = scene.broken.get("deployments.apps", "rate", scene.namespace)
        assert workload is not None
        names = [container["name"] for container in workload["spec"]["template"]["spec"]["containers"]]
        pod = {"containers": [{"name": name, **source} for name in names]}
        lines = [
            apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}),
            scene.kubectl(f"set env deployment/rate {' '.join(f'{name}-' for name in Policy.bounds)}"),
            scene.patch("deployment", "rate", {"spec": {"template": {"spec": pod}}}),
            scene.kubectl("rollout status deployment/rate --timeout=60s"),
            scene.kubectl("rollout restart deployment/search"),
        ]
        return Play("\n".join(lines), wait=120, speed=5.0)


SCRIPTS = (LiftedLimits(),)
