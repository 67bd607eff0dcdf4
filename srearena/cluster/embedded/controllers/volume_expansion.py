"""Expansion of claims: no built-in plugin can grow a volume, so an external resizer is awaited."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.objects import Obj, dig, is_terminating, key_of
from srearena.cluster.embedded.quantity import units

CLAIMS = "persistentvolumeclaims"
_WAITING = "waiting for an external controller to expand this PVC"


class ExpandController(Controller):
    name = "expand-controller"
    source = "volume_expand"

    def start(self) -> None:
        self.watch(CLAIMS, lambda claim: (key_of(claim),) if _wants_more(claim) else ())

    def reconcile(self, key: str) -> None:
        claim = self.client.get(CLAIMS, *split_key(key))
        if claim is not None and not is_terminating(claim) and _wants_more(claim):
            self.recorder.event(claim, "Normal", "ExternalExpanding", _WAITING)


def _wants_more(claim: Obj) -> bool:
    if dig(claim, "status", "phase") != "Bound":
        return False
    requested = dig(claim, "spec", "resources", "requests", "storage", default="0")
    capacity = dig(claim, "status", "capacity", "storage", default="0")
    return units(requested) > units(capacity)
