"""Custom resources of a kind whose definition is being deleted: nothing new of that kind is created."""

from __future__ import annotations

from typing import Final

from srearena.cluster.embedded.objects import is_terminating
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.store import Store

_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"


class CustomResourceLifecycle(Plugin):
    """Part of the server of custom resources on a real cluster, around all other plug-ins."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, attributes: Attributes) -> None:
        if attributes.operation != "CREATE" or not attributes.row.custom:
            return
        definition = self._store.get(_DEFINITIONS, "", attributes.row.group_resource)
        if definition is not None and is_terminating(definition):
            raise attributes.refusal("create not allowed while custom resource definition is terminating")
