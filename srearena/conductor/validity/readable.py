"""Every object that an agent can list with its kubeconfig."""

from __future__ import annotations

from collections.abc import Iterator

from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.resources import Resource


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
