"""ServiceAccount: every pod runs as an account that exists, and finds its token where programs look for it."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, annotations_of
from srearena.cluster.embedded.randomness import Randomness
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.store import Store

TOKEN_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
_MIRROR = "kubernetes.io/config.mirror"
_TOKEN_SECONDS = 3607


class ServiceAccount(Plugin):
    name = "ServiceAccount"

    def __init__(self, store: Store, randomness: Randomness) -> None:
        self._store = store
        self._randomness = randomness

    def admit(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or not attributes.is_for("pods", "CREATE") or _MIRROR in annotations_of(pod):
            return
        spec = pod.setdefault("spec", {})
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self._account(attributes, name)
        if _wants_token(spec, account):
            self._mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [dict(secret) for secret in account["imagePullSecrets"]]

    def _account(self, attributes: Attributes, name: str) -> Obj:
        account = self._store.get("serviceaccounts", attributes.namespace, name)
        if account is None:
            where = f"{attributes.namespace}/{name}"
            why = f'error looking up service account {where}: serviceaccount "{name}" not found'
            raise attributes.refusal(why)
        return account

    def _mount_token(self, spec: Obj) -> None:
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        needing = [
            container
            for container in containers
            if all(mount.get("mountPath") != TOKEN_DIRECTORY for mount in container.get("volumeMounts") or ())
        ]
        if not needing:
            return
        name = f"kube-api-access-{self._randomness.suffix()}"
        for container in needing:
            mount = {"name": name, "readOnly": True, "mountPath": TOKEN_DIRECTORY}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
        spec["volumes"] = [*(spec.get("volumes") or ()), _token_volume(name)]


def _wants_token(spec: Obj, account: Obj) -> bool:
    own = spec.get("automountServiceAccountToken")
    return bool(own if own is not None else account.get("automountServiceAccountToken", True))


def _token_volume(name: str) -> Obj:
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {
                    "downwardAPI": {
                        "items": [
                            {
                                "path": "namespace",
                                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                            }
                        ]
                    }
                },
            ],
            "defaultMode": 420,
        },
    }
