"""What the server fills into pods and pod templates.

Defaulting is idempotent and touches nothing that is already complete, so it may run over stored parts of an object.
"""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.image_references import InvalidReference, parse_reference
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.amounts import settle
from srearena.cluster.embedded.registry.strategies.parts import fill, part
from srearena.cluster.embedded.registry.strategies.pod_resources import default_pod_level

GRACE_SECONDS = 30
_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600

# What a volume source is filled up with, by its key.
_VOLUME_DEFAULTS: dict[str, Obj] = {
    "secret": {"defaultMode": _FILE_MODE},
    "configMap": {"defaultMode": _FILE_MODE},
    "downwardAPI": {"defaultMode": _FILE_MODE},
    "projected": {"defaultMode": _FILE_MODE},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_PROBE_DEFAULTS = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))
_SPEC_DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("restartPolicy", "Always"),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
)
_RETIRED_ANNOTATIONS = (
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
)


def default_pod(pod: Obj) -> None:
    """A pod of its own gets more than a template: requests from limits, service links, host ports."""
    spec = part(pod, "spec")
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    default_pod_spec(spec)
    _drop_retired(pod.get("metadata"))
    for containers in (spec.get("containers"), spec.get("initContainers")):
        for container in containers or ():
            _request_limits(container["resources"])
    if spec.get("resources"):
        default_pod_level(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        _publish_ports(spec)


def default_template(template: Obj) -> None:
    """The pod template of a workload."""
    _drop_retired(part(template, "metadata"))
    default_pod_spec(part(template, "spec"))


def default_pod_spec(spec: Obj) -> None:
    for key, value in _SPEC_DEFAULTS:
        if not spec.get(key):
            spec[key] = value
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = GRACE_SECONDS
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account and not (spec.get("serviceAccount") == account == spec.get("serviceAccountName")):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    settle(spec.get("resources"), "limits", "requests")
    settle(spec, "overhead")
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") not in (None, "Always"):
            del container["restartPolicy"]
        _default_container(container)
    for key in ("containers", "ephemeralContainers"):
        for container in spec.get(key) or ():
            # Restart rules of regular containers are an alpha feature, which a server leaves out silently.
            container.pop("restartPolicy", None)
            _default_container(container)


def default_volume_source(holder: Obj) -> str:
    """Fill up the volume source that `holder` has among its fields; returns which it is."""
    kind = ""
    for key, source in holder.items():
        if key != "name" and source is not None:
            kind = key
            defaults = _VOLUME_DEFAULTS.get(key)
            if defaults:
                fill(source, defaults)
    return kind


def default_volume(volume: Obj) -> None:
    kind = default_volume_source(volume)
    if not kind:
        volume["emptyDir"] = {}
    elif kind == "projected":
        for source in volume[kind].get("sources") or ():
            token, fields = source.get("serviceAccountToken"), source.get("downwardAPI")
            if token is not None and token.get("expirationSeconds") is None:
                token["expirationSeconds"] = _TOKEN_SECONDS
            _default_field_items(fields)
    elif kind == "downwardAPI":
        _default_field_items(volume[kind])
    elif kind == "ephemeral":
        template = volume[kind].get("volumeClaimTemplate")
        if template:
            part(template, "metadata")
            default_claim_spec(part(template, "spec"))
    elif kind == "image" and not volume[kind].get("pullPolicy"):
        volume[kind]["pullPolicy"] = pull_policy(volume[kind].get("reference"))
    elif kind == "emptyDir":
        _default_size_limit(volume[kind])


def default_claim_spec(spec: Obj) -> None:
    """The spec of a PersistentVolumeClaim, wherever it is written."""
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"
    settle(part(spec, "resources"), "limits", "requests")


def pull_policy(image: str | None) -> str:
    """`Always` for an image whose tag is `latest`, named or implied; a malformed name has no tag."""
    try:
        tag = parse_reference(image or "").tag
    except InvalidReference:
        tag = ""
    return "Always" if tag == "latest" else "IfNotPresent"


def _default_size_limit(source: Obj) -> None:
    if source.get("sizeLimit") is not None:
        holder = {"size": {"limit": source["sizeLimit"]}}
        settle(holder, "size")
        if holder["size"]["limit"] != source["sizeLimit"]:
            source["sizeLimit"] = holder["size"]["limit"]


def _default_field_items(source: Obj | None) -> None:
    for item in (source or {}).get("items") or ():
        field = item.get("fieldRef")
        if field is not None and not field.get("apiVersion"):
            field["apiVersion"] = "v1"
        _default_divisor(item.get("resourceFieldRef"))


def _default_divisor(reference: Obj | None) -> None:
    """The divisor of a resourceFieldRef is a quantity that is always written, zero standing for one."""
    if reference is not None and reference.get("divisor") is None:
        reference["divisor"] = "0"


def _default_container(container: Obj) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image"))
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    resources = part(container, "resources")
    if resources:
        settle(resources, "limits", "requests")
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        source = variable.get("valueFrom")
        if source:
            _default_env_source(source)
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(key)
        if probe is not None:
            _default_probe(probe)
    hooks = container.get("lifecycle")
    if hooks:
        for key in ("postStart", "preStop"):
            action = (hooks.get(key) or {}).get("httpGet")
            if action is not None:
                _default_http_get(action)


def _default_env_source(source: Obj) -> None:
    field = source.get("fieldRef")
    if field is not None and not field.get("apiVersion"):
        field["apiVersion"] = "v1"
    _default_divisor(source.get("resourceFieldRef"))
    key = source.get("fileKeyRef")
    if key is not None and key.get("optional") is None:
        key["optional"] = False


def _default_probe(probe: Obj) -> None:
    for key, value in _PROBE_DEFAULTS:
        if not probe.get(key):
            probe[key] = value
    action = probe.get("httpGet")
    if action is not None:
        _default_http_get(action)
    call = probe.get("grpc")
    if call is not None and call.get("service") is None:
        call["service"] = ""


def _default_http_get(action: Obj) -> None:
    if not action.get("path"):
        action["path"] = "/"
    if not action.get("scheme"):
        action["scheme"] = "HTTP"


def _request_limits(resources: Obj) -> None:
    """Default a missing request to the limit."""
    limits = resources.get("limits")
    if not limits:
        return
    requests = resources.get("requests")
    if requests is None:
        resources["requests"] = dict(limits)
        return
    for name, amount in limits.items():
        if name not in requests:
            requests[name] = amount


def _publish_ports(spec: Obj) -> None:
    """In the node's network a container's port is the node's port."""
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]


def _drop_retired(metadata: Obj | None) -> None:
    annotations = (metadata or {}).get("annotations")
    if annotations:
        for key in _RETIRED_ANNOTATIONS:
            annotations.pop(key, None)
