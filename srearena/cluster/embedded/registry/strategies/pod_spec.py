"""What a pod's spec may say, in a pod of its own or in a template."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, annotations_of, meta, name_of
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import MAX_INT32, Problems
from srearena.cluster.embedded.registry.strategies.containers import (
    Surroundings,
    containers,
    ephemeral_containers,
    init_containers,
    untrimmed_image,
)
from srearena.cluster.embedded.registry.strategies.parts import items
from srearena.cluster.embedded.registry.strategies.pod_scheduling import affinity, tolerations, topology_spread
from srearena.cluster.embedded.registry.strategies.requirements import container_requirements, pod_requirements
from srearena.cluster.embedded.registry.strategies.security_contexts import pod_security
from srearena.cluster.embedded.registry.strategies.volumes import pod_volumes

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
MIRROR = "kubernetes.io/config.mirror"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_NAMESERVERS, _MOST_SEARCHES, _LONGEST_SEARCH = 3, 32, 2048


def check_pod_spec(problems: Problems, path: str, spec: Obj, *, pod_name: str = "", is_pod: bool = False) -> None:
    volumes = spec.get("volumes")
    around = Surroundings(
        pod_volumes(problems, f"{path}.volumes", volumes, pod_name) if volumes else {},
        spec.get("terminationGracePeriodSeconds") or 0,
        spec.get("restartPolicy") or "",
        spec.get("hostUsers") is not False,
    )
    if spec.get("resourceClaims"):
        around.claims = frozenset(claim.get("name") or "" for claim in spec["resourceClaims"])
        _resource_claims(problems, f"{path}.resourceClaims", spec["resourceClaims"])
    regular = items(spec, "containers")
    containers(problems, f"{path}.containers", regular, around)
    if spec.get("initContainers"):
        init_containers(problems, f"{path}.initContainers", spec["initContainers"], regular, around)
    if spec.get("ephemeralContainers"):
        ephemeral_containers(problems, f"{path}.ephemeralContainers", spec, around)
    if spec.get("resources") is not None:
        pod_requirements(problems, f"{path}.resources", spec)
    if spec.get("hostNetwork"):
        _host_network(problems, path, regular, is_pod=is_pod)
    checks.required_one_of(problems, f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    checks.required_one_of(problems, f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    if spec.get("nodeSelector"):
        checks.labels(problems, f"{path}.nodeSelector", spec["nodeSelector"])
    pod_security(problems, f"{path}.securityContext", spec)
    if spec.get("affinity"):
        affinity(problems, f"{path}.affinity", spec["affinity"])
    _dns(problems, f"{path}.dnsConfig", spec)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        where = f"{path}.readinessGates[{index}].conditionType"
        checks.qualified_name(problems, where, gate.get("conditionType") or "")
    if spec.get("schedulingGates"):
        _scheduling_gates(problems, f"{path}.schedulingGates", spec["schedulingGates"])
    if spec.get("topologySpreadConstraints"):
        topology_spread(problems, f"{path}.topologySpreadConstraints", spec["topologySpreadConstraints"])
    if not around.host_users:
        _own_users(problems, path, spec)
    _names(problems, path, spec)


def _names(problems: Problems, path: str, spec: Obj) -> None:
    """The tail of a spec: what it calls itself and refers to by name."""
    for key in ("serviceAccountName", "nodeName"):
        if spec.get(key):
            checks.subdomain(problems, f"{path}.{key}", spec[key])
    checks.in_range(problems, f"{path}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"), 1, MAX_INT32)
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            checks.label(problems, f"{path}.{key}", spec[key])
    if spec.get("tolerations"):
        tolerations(problems, f"{path}.tolerations", spec["tolerations"])
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        checks.ip(problems, f"{path}.hostAliases[{index}].ip", alias.get("ip") or "")
        for number, name in enumerate(items(alias, "hostnames")):
            checks.subdomain(problems, f"{path}.hostAliases[{index}].hostnames[{number}]", name)
    if spec.get("priorityClassName"):
        checks.subdomain(problems, f"{path}.priorityClassName", spec["priorityClassName"])
    if spec.get("runtimeClassName") is not None:
        checks.subdomain(problems, f"{path}.runtimeClassName", spec["runtimeClassName"])
    if spec.get("preemptionPolicy") is not None:
        checks.required_one_of(problems, f"{path}.preemptionPolicy", spec["preemptionPolicy"], PREEMPTION_POLICIES)
    if spec.get("overhead"):
        container_requirements(problems, f"{path}.overhead", {"limits": spec["overhead"]})
    system = spec.get("os")
    if system is not None and checks.required(problems, f"{path}.os.name", system.get("name")):
        checks.one_of(problems, f"{path}.os", system["name"], ("linux", "windows"))


def _resource_claims(problems: Problems, path: str, claims: list[Obj]) -> None:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where, name = f"{path}[{index}]", claim.get("name") or ""
        if not name:
            problems.append(FieldError.required(f"{where}.name"))
        elif checks.unique(problems, f"{where}.name", name, seen):
            checks.label(problems, f"{where}.name", name)
        direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {"Name": name, "ResourceClaimName": direct, "ResourceClaimTemplateName": template}
        if direct is not None and template is not None:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            problems.append(FieldError.invalid(where, shown, text))
        if direct is None and template is None:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            problems.append(FieldError.invalid(where, shown, text))
        for key, value in (("resourceClaimName", direct), ("resourceClaimTemplateName", template)):
            if value is not None:
                checks.subdomain(problems, f"{where}.{key}", value)


def _host_network(problems: Problems, path: str, listed: list[Obj], *, is_pod: bool) -> None:
    for index, container in enumerate(listed):
        for number, port in enumerate(items(container, "ports")):
            outside, inside = port.get("hostPort") or 0, port.get("containerPort") or 0
            if outside != inside and (is_pod or outside):
                where = f"{path}.containers[{index}].ports[{number}].hostPort"
                text = "must match `containerPort` when `hostNetwork` is true"
                problems.append(FieldError.invalid(where, outside, text))


def _dns(problems: Problems, path: str, spec: Obj) -> None:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            problems.append(FieldError.required(path, "must provide `dnsConfig` when `dnsPolicy` is None"))
            return
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            problems.append(FieldError.required(f"{path}.nameservers", text))
            return
    if not config:
        return
    servers, searches = items(config, "nameservers"), items(config, "searches")
    if len(servers) > _MOST_NAMESERVERS:
        text = f"must not have more than {_MOST_NAMESERVERS} nameservers"
        problems.append(FieldError.invalid(f"{path}.nameservers", servers, text))
    for index, server in enumerate(servers):
        checks.ip(problems, f"{path}.nameservers[{index}]", server)
    if len(searches) > _MOST_SEARCHES:
        text = f"must not have more than {_MOST_SEARCHES} search paths"
        problems.append(FieldError.invalid(f"{path}.searches", searches, text))
    if len(" ".join(searches)) > _LONGEST_SEARCH:
        text = f"must not have more than {_LONGEST_SEARCH} characters (including spaces) in the search list"
        problems.append(FieldError.invalid(f"{path}.searches", searches, text))
    for index, search in enumerate(searches):
        if search != ".":
            checks.search_domain(problems, f"{path}.searches[{index}]", search.removesuffix("."))
    for index, option in enumerate(items(config, "options")):
        if not option.get("name"):
            problems.append(FieldError.required(f"{path}.options[{index}]", "must not be empty"))


def _scheduling_gates(problems: Problems, path: str, gates: list[Obj]) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        checks.qualified_name(problems, f"{path}[{index}]", gate.get("name") or "")
        checks.unique(problems, f"{path}[{index}]", gate.get("name") or "", seen)


def _own_users(problems: Problems, path: str, spec: Obj) -> None:
    """A pod with users of its own cannot share the node's namespaces."""
    for key, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(key):
            problems.append(FieldError.forbidden(f"{path}.{shown}", "when `hostUsers` is false"))


def pod_annotations(problems: Problems, path: str, annotations: dict[str, str], spec: Obj) -> None:
    if MIRROR in annotations and not spec.get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        problems.append(FieldError.invalid(f"{path}[{MIRROR}]", annotations[MIRROR], text))
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_int32(cost):
        problems.append(FieldError.invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer"))


def _is_int32(text: str) -> bool:
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or (len(digits) > 1 and digits[0] == "0"):
        return False
    return text != "-0" and -(2**31) <= int(text) < 2**31


def check_template(problems: Problems, path: str, value: Obj) -> None:
    """A pod template; `path` is where it stands."""
    metadata, spec = value.get("metadata") or {}, value.get("spec") or {}
    # The real paths leave out `metadata` here.
    if metadata.get("labels"):
        checks.labels(problems, f"{path}.labels", metadata["labels"])
    if metadata.get("annotations"):
        problems += names.annotations_errors(metadata["annotations"], f"{path}.annotations")
        pod_annotations(problems, f"{path}.annotations", metadata["annotations"], spec)
    check_pod_spec(problems, f"{path}.spec", spec)
    if spec.get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        problems.append(FieldError.forbidden(f"{path}.spec.ephemeralContainers", text))


def validate_pod(obj: Obj) -> Problems:
    """A pod of its own."""
    problems: Problems = []
    spec = obj.get("spec") or {}
    if meta(obj).get("annotations"):
        pod_annotations(problems, "metadata.annotations", annotations_of(obj), spec)
    check_pod_spec(problems, "spec", spec, pod_name=name_of(obj), is_pod=True)
    if not spec.get("serviceAccountName"):
        _tokens_without_account(problems, spec)
    for key in ("containers", "initContainers"):
        for index, container in enumerate(items(spec, key)):
            untrimmed_image(problems, f"spec.{key}[{index}]", container)
    return problems


def _tokens_without_account(problems: Problems, spec: Obj) -> None:
    for index, volume in enumerate(items(spec, "volumes")):
        for number, source in enumerate(items(volume.get("projected"), "sources")):
            if source.get("serviceAccountToken") is not None:
                where = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                text = "must not be specified when serviceAccountName is not set"
                problems.append(FieldError.forbidden(where, text))


def validate_new_pod(obj: Obj) -> Problems:
    """What only a new pod is held to."""
    problems: Problems = []
    spec = obj.get("spec") or {}
    if spec.get("ephemeralContainers"):
        problems.append(FieldError.forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "cannot be set until all schedulingGates have been cleared"
        problems.append(FieldError.forbidden("spec.nodeName", text))
    return problems
