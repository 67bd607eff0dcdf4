"""Default objects of a namespace: the default service account, and the API server's certificate authority."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import Obj, is_terminating, namespace_of

ROOT_CA = "kube-root-ca.crt"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class ServiceAccountController(Controller):
    name = "service-account-controller"

    def start(self) -> None:
        self.watch("namespaces")
        self.watch("serviceaccounts", lambda account: (namespace_of(account),))

    def reconcile(self, key: str) -> None:
        namespace = self.client.get("namespaces", "", key)
        if namespace is None or is_terminating(namespace):
            return
        if self.client.get("serviceaccounts", key, "default") is None:
            account: Obj = {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default", "namespace": key},
            }
            self.client.create("serviceaccounts", account)


class RootCaPublisher(Controller):
    name = "root-ca-cert-publisher"

    def start(self) -> None:
        self.watch("namespaces")
        self.watch("configmaps", lambda obj: (namespace_of(obj),) if obj["metadata"]["name"] == ROOT_CA else ())

    def reconcile(self, key: str) -> None:
        namespace = self.client.get("namespaces", "", key)
        if namespace is None or is_terminating(namespace):
            return
        data = {"ca.crt": self.world.root_certificate}
        known = self.client.get("configmaps", key, ROOT_CA)
        if known is None:
            published: Obj = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": ROOT_CA,
                    "namespace": key,
                    "annotations": {"kubernetes.io/description": _DESCRIPTION},
                },
                "data": data,
            }
            self.client.create("configmaps", published)
        elif known.get("data") != data:
            self.client.modify("configmaps", key, ROOT_CA, lambda obj: obj.update(data=data))
