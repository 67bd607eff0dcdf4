"""Everything that an agent can read with its kubeconfig: objects and logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.resources import Resource

_LONGEST_LOG = 500
"""Lines that are read of one container, from the end."""


class Log(NamedTuple):
    """The last lines of one container."""

    namespace: str
    pod: str
    container: str
    text: str


def readable_objects(api: Kubernetes) -> Iterator[tuple[Resource, Obj]]:
    """Yield each object with its resource; custom resource definitions are published text and left out."""
    for resource in api.resources():
        if "list" not in resource.verbs or resource.kind == "CustomResourceDefinition":
            continue
        try:
            objects = api.list(resource.name)
        except ServiceError:
            continue  # not within the rights
        for obj in objects:
            yield resource, obj


def readable_logs(api: Kubernetes) -> Iterator[Log]:
    """Yield the log of each container of each pod; those that have none yet are left out."""
    for pod in api.list("pods"):
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        for container in pod["spec"]["containers"]:
            try:
                text = api.logs(name, namespace, container=container["name"], tail=_LONGEST_LOG)
            except ServiceError:
                continue
            yield Log(namespace, name, container["name"], text)
