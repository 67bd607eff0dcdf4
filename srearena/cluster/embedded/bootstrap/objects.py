"""Create the initial objects of a cluster under the identities of the components that create them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import cast

import yaml

from srearena.cluster.embedded.bootstrap import flow_control, settings
from srearena.cluster.embedded.bootstrap.controller_roles import RUNNING_CONTROLLERS
from srearena.cluster.embedded.bootstrap.roles import bootstrap_roles
from srearena.cluster.embedded.objects import Obj, copy_of
from srearena.cluster.embedded.registry.identity import SUPERUSERS, User
from srearena.cluster.embedded.world import World

NAMESPACES = ("kube-system", "default", "kube-node-lease", "kube-public")
SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
_SERVICE_RANGES = "servicecidrs.networking.k8s.io"
_MANIFESTS = ("priorities", "dns", "proxy", "storage", "metrics")
_ADDONS = ("network", "provisioner", "exporter")
_ADMINISTRATOR = User("kubernetes-admin", ("kubeadm:cluster-admins", "system:authenticated"))
_API_SERVER = User("system:apiserver", (SUPERUSERS,))


def create_namespaces(world: World) -> None:
    client = world.client(_API_SERVER, "kube-apiserver")
    for name in NAMESPACES:
        client.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def create_roles(world: World) -> None:
    client = world.client(_API_SERVER, "kube-apiserver")
    for obj in bootstrap_roles():
        client.create(f"{obj['kind'].lower()}s.rbac.authorization.k8s.io", obj)


def create_server_objects(world: World) -> None:
    """Objects the API server maintains: flow control, the cluster IP range, its trusted authorities."""
    client = world.client(_API_SERVER, "kube-apiserver")
    now = world.clock.timestamp()
    for level in flow_control.priority_levels():
        client.create(flow_control.PRIORITY_LEVELS, level)
    for schema in flow_control.flow_schemas():
        client.set_status(
            flow_control.FLOW_SCHEMAS,
            client.create(flow_control.FLOW_SCHEMAS, schema),
            flow_control.schema_status(schema, now),
        )
    services: Obj = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes", "finalizers": ["networking.k8s.io/service-cidr-finalizer"]},
        "spec": {"cidrs": [SERVICE_RANGE]},
    }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
        "lastTransitionTime": now,
    }
    client.set_status(_SERVICE_RANGES, client.create(_SERVICE_RANGES, services), {"conditions": [ready]})
    client.create("configmaps", settings.server_settings(world.root_certificate))
    client.create("configmaps", settings.token_tracking(now))


def create_controller_accounts(world: World) -> None:
    """The service accounts under which the controller manager runs its controllers."""
    client = world.component_client("kube-controller-manager")
    for name in RUNNING_CONTROLLERS:
        metadata = {"name": name, "namespace": "kube-system"}
        client.create("serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})


def create_system(world: World) -> None:
    """Objects of kubeadm, and of the manifests beside this module: DNS, proxy, storage, metrics."""
    client = world.client(_ADMINISTRATOR, "kubeadm")
    encoded = b64encode(world.root_certificate.encode()).decode()
    for found in settings.kubeadm_settings(world.control_plane_name, encoded):
        client.create("configmaps", found)
    for obj in _objects_of(_MANIFESTS + (_ADDONS if world.has_addons else ())):
        row = world.registry.resources.of_kind(obj["apiVersion"], obj["kind"])
        if row is None:
            raise LookupError(f"no resource serves {obj['apiVersion']} {obj['kind']}")
        client.create(row.group_resource, copy_of(obj))


def create_api_service(world: World, address: str, port: int = 6443) -> None:
    """The `kubernetes` Service of the API."""
    client = world.client(_API_SERVER, "kube-apiserver")
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
    service: Obj = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {"clusterIP": API_SERVICE_ADDRESS, "type": "ClusterIP", "ports": ports},
    }
    client.create("services", service)
    endpoints: Obj = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [
            {"addresses": [{"ip": address}], "ports": [{"name": "https", "port": port, "protocol": "TCP"}]},
        ],
    }
    client.create("endpoints", endpoints)
    piece: Obj = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    client.create("endpointslices.discovery.k8s.io", piece)


@cache
def _objects_of(manifests: tuple[str, ...]) -> tuple[Obj, ...]:
    return tuple(obj for name in manifests for obj in _manifest(name))


def _manifest(name: str) -> Iterator[Obj]:
    text = files(__package__).joinpath("manifests", f"{name}.yaml").read_text()
    for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
        yield cast(Obj, document)
