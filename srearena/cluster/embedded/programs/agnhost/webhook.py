"""agnhost webhook: an admission webhook with a verdict for each path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.programs.agnhost.commands import command
from srearena.cluster.embedded.programs.serving import Flags
from srearena.cluster.embedded.programs.system.admission_server import Verdict, patched, serve_reviews

_MARK = "webhook-e2e-test"
_DELAY = 5.0
_FOREVER = 10.0**9
_ALLOWED: Verdict = {"allowed": True}


@command("webhook")
async def webhook(process: Process, flags: Flags) -> int:
    async def review(path: str, admission: Obj) -> Verdict | None:
        if path == "/always-allow-delay-5s":
            await process.sleep(_DELAY)
            return {"allowed": True, "status": {"message": "this webhook allows all requests"}}
        if path == "/pods" and _labels(admission).get(_MARK) == "wait-forever":
            await process.sleep(_FOREVER)
        if path == "/mutating-pods-sidecar":
            return _with_sidecar(admission, flags.get("sidecar-image"))
        decide = _VERDICTS.get(path)
        return decide(admission) if decide is not None else None

    return await serve_reviews(process, flags, review)


def _denied(message: str = "", **status: Any) -> Verdict:
    return {"allowed": False, "status": {**({"message": message} if message else {}), **status}}


def _object(admission: Obj) -> Obj:
    return (admission.get("oldObject") if admission.get("operation") == "DELETE" else admission.get("object")) or {}


def _labels(admission: Obj) -> Obj:
    return dig(admission.get("object") or {}, "metadata", "labels", default={}) or {}


def _always_deny(admission: Obj) -> Verdict:
    return _denied("this webhook denies all requests")


def _add_label(admission: Obj) -> Verdict:
    labels = _labels(admission)
    if not labels:
        return patched([{"op": "add", "path": "/metadata/labels", "value": {"added-label": "yes"}}])
    if labels.get("added-label") == "yes":
        return _ALLOWED
    verb = "replace" if "added-label" in labels else "add"
    return patched([{"op": verb, "path": "/metadata/labels/added-label", "value": "yes"}])


def _pods(admission: Obj) -> Verdict:
    problems = []
    if _labels(admission).get(_MARK) == "webhook-disallow":
        problems.append("the pod contains unwanted label;")
    for container in dig(admission.get("object") or {}, "spec", "containers", default=[]):
        if "webhook-disallow" in container.get("name", ""):
            problems.append("the pod contains unwanted container name;")
    return _denied(" ".join(problems)) if problems else _ALLOWED


def _attach(admission: Obj) -> Verdict:
    options = admission.get("object") or {}
    guarded = admission.get("name") == "to-be-attached-pod" and admission.get("subResource") == "attach"
    if guarded and options.get("stdin") and options.get("container") == "container1":
        return _denied("attaching to pod 'to-be-attached-pod' is not allowed")
    return _ALLOWED


def _mutated_pod(admission: Obj) -> Verdict:
    pod = admission.get("object") or {}
    name = "webhook-added-init-container"
    present = [container.get("name") for container in dig(pod, "spec", "initContainers", default=[]) or ()]
    if dig(pod, "metadata", "name") != "webhook-to-be-mutated" or name in present:
        return _ALLOWED
    container = {"image": "webhook-added-image", "name": name, "resources": {}}
    return patched([{"op": "add", "path": "/spec/initContainers", "value": [container]}])


def _with_sidecar(admission: Obj, image: str) -> Verdict:
    if not image:
        return _denied("No image specified by the sidecar-image parameter", status="Failure", code=500)
    name = "webhook-added-sidecar"
    containers = dig(admission.get("object") or {}, "spec", "containers", default=[]) or ()
    if name in [container.get("name") for container in containers]:
        return _ALLOWED
    sidecar = {"image": image, "name": name, "resources": {}}
    return patched([{"op": "add", "path": "/spec/containers/-", "value": sidecar}])


def _guarding(unwanted: str, undeletable: str) -> Callable[[Obj], Verdict]:
    """Deny what carries a mark in its data: to be created or changed for one value, to be deleted for another."""

    def decide(admission: Obj) -> Verdict:
        mark, operation = (_object(admission).get("data") or {}).get(_MARK), admission.get("operation")
        if mark == "webhook-disallow" and operation in ("CREATE", "UPDATE"):
            return _denied(reason=unwanted)
        if mark == "webhook-nondeletable" and operation == "DELETE":
            return _denied(reason=undeletable)
        return _ALLOWED

    return decide


def _staged(admission: Obj) -> Verdict:
    """The first webhook of two adds stage 1, the second sees that and adds stage 2."""
    data = (admission.get("object") or {}).get("data") or {}
    stage = 2 if data.get("mutation-stage-1") == "yes" else 1 if data.get("mutation-start") == "yes" else 0
    return patched([{"op": "add", "path": f"/data/mutation-stage-{stage}", "value": "yes"}]) if stage else _ALLOWED


def _definition(admission: Obj) -> Verdict:
    if _labels(admission).get(_MARK) == "webhook-disallow":
        return _denied("the crd contains unwanted label")
    return _ALLOWED


_VERDICTS: dict[str, Callable[[Obj], Verdict]] = {
    "/always-deny": _always_deny,
    "/add-label": _add_label,
    "/pods": _pods,
    "/pods/attach": _attach,
    "/mutating-pods": _mutated_pod,
    "/configmaps": _guarding(
        "the configmap contains unwanted key and value",
        "the configmap cannot be deleted because it contains unwanted key and value",
    ),
    "/mutating-configmaps": _staged,
    "/custom-resource": _guarding(
        "the custom resource contains unwanted data",
        "the custom resource cannot be deleted because it contains unwanted key and value",
    ),
    "/mutating-custom-resource": _staged,
    "/crd": _definition,
}
