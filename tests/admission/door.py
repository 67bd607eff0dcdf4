"""A bare world with its admission chain: objects are offered, and the door says what it lets in."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj, copy_of
from srearena.cluster.embedded.registry.admission.plugins import install
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.registry import WriteOptions
from srearena.cluster.embedded.world import World


class Door:
    def __init__(self) -> None:
        self.world = World(seed=1, start=1_700_000_000.0)
        self.webhooks = install(self.world.registry)
        self.warnings: list[str] = []
        self.let_in("namespaces", {"metadata": {"name": "default"}})
        self.let_in("serviceaccounts", {"metadata": {"name": "default"}})

    def let_in(self, resource: str, obj: Obj) -> Obj:
        row = self.world.registry.row(resource)
        obj = {"apiVersion": row.api_version, "kind": row.kind, **copy_of(obj)}
        namespace = ""
        if row.namespaced:
            namespace = obj["metadata"].setdefault("namespace", "default")
        return self.world.registry.create(row, namespace, obj, self._options())

    def refuse(self, resource: str, obj: Obj) -> str:
        try:
            self.let_in(resource, obj)
        except ApiError as refusal:
            return str(refusal)
        raise AssertionError(f"{resource} were let in")

    def label(self, namespace: str, **labels: str) -> None:
        names = {f"pod-security.kubernetes.io/{key.replace('_', '-')}": value for key, value in labels.items()}

        def change(old: Obj) -> Obj:
            new = copy_of(old)
            new["metadata"]["labels"] = {**new["metadata"]["labels"], **names}
            return new

        self.world.registry.update(self.world.registry.row("namespaces"), "", namespace, change, self._options())

    def quota(self, name: str, used: dict[str, str] | None = None, **spec: Any) -> None:
        """A quota of which the controller has counted the use."""
        quota = self.let_in("resourcequotas", {"metadata": {"name": name}, "spec": spec})
        status = {"hard": spec["hard"], "used": {**dict.fromkeys(spec["hard"], "0"), **(used or {})}}
        self.world.client(User("admin", ("system:masters",)), "test").set_status("resourcequotas", quota, status)

    def _options(self) -> WriteOptions:
        self.warnings = []
        return WriteOptions(User("admin", ("system:masters",)), "test", warnings=self.warnings)


def pod(name: str = "p", *containers: Obj, **spec: Any) -> Obj:
    return {"metadata": {"name": name}, "spec": {"containers": list(containers) or [container("c")], **spec}}


def container(name: str, requests: Obj | None = None, limits: Obj | None = None, **more: Any) -> Obj:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return {"name": name, "image": "nginx", **({"resources": resources} if resources else {}), **more}
