"""The status of validating admission policies: that they were checked, with warnings about the types of their kinds."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import meta

POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"


class PolicyStatusController(Controller):
    name = "validatingadmissionpolicy-status-controller"

    def start(self) -> None:
        self.watch(POLICIES)

    def reconcile(self, key: str) -> None:
        found = self.client.get(POLICIES, "", key.rpartition("/")[2])
        if found is None:
            return
        status = found.get("status") or {}
        generation = meta(found).get("generation", 1)
        if status.get("observedGeneration") == generation:
            return
        # Loads CEL, which clusters without policies never need.
        from srearena.cluster.embedded.registry.admission.type_checking import warnings_of

        warnings = warnings_of(found, self.world.registry.resources)
        checked = {"expressionWarnings": warnings} if warnings else {}
        self.client.set_status(POLICIES, found, {**status, "observedGeneration": generation, "typeChecking": checked})
