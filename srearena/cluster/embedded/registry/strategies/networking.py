"""Ingresses, their classes, and network policies."""

from __future__ import annotations

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, annotations_of
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill, fill_empty, items, part
from srearena.cluster.embedded.registry.strategy import Strategy

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDINGS = ("/..", "/.")


def _default_ingress(obj: Obj) -> None:
    part(obj, "spec")
    part(part(obj, "status"), "loadBalancer")


def _default_ingress_class(obj: Obj) -> None:
    parameters = part(obj, "spec").get("parameters")
    if parameters is not None:
        fill(parameters, {"scope": "Cluster"})


def _default_network_policy(obj: Obj) -> None:
    spec = part(obj, "spec")
    part(spec, "podSelector")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*items(spec, "ingress"), *items(spec, "egress")):
        for port in items(rule, "ports"):
            fill_empty(port, {"protocol": "TCP"})


def _validate_ingress(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        text = "either `defaultBackend` or `rules` must be specified"
        problems.append(FieldError.invalid("spec", spec.get("rules"), text))
    if spec.get("defaultBackend") is not None:
        _backend(problems, "spec.defaultBackend", spec["defaultBackend"])
    for index, rule in enumerate(items(spec, "rules")):
        _rule(problems, f"spec.rules[{index}]", rule)
    for index, tls in enumerate(items(spec, "tls")):
        for number, host in enumerate(items(tls, "hosts")):
            _host(problems, f"spec.tls[{index}].hosts[{number}]", host)
        if tls.get("secretName"):
            checks.subdomain(problems, f"spec.tls[{index}].secretName", tls["secretName"])
    if spec.get("ingressClassName") is not None:
        checks.subdomain(problems, "spec.ingressClassName", spec["ingressClassName"])
    return problems


def _validate_new_ingress(obj: Obj) -> Problems:
    named, wanted = annotations_of(obj).get(CLASS_ANNOTATION), (obj.get("spec") or {}).get("ingressClassName")
    if named is None or wanted is None or named == wanted:
        return []
    text = "must match `ingressClassName` when both are specified"
    return [FieldError.invalid(f"annotations.{CLASS_ANNOTATION}", named, text)]


def _host(problems: Problems, path: str, host: str) -> None:
    wrong = checks.wildcard_errors(host) if "*" in host else names.subdomain_errors(host)
    checks.invalid_each(problems, path, host, wrong)


def _rule(problems: Problems, path: str, rule: Obj) -> None:
    host, http = rule.get("host") or "", rule.get("http")
    if host:
        if checks.is_ip(host):
            problems.append(FieldError.invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
        _host(problems, f"{path}.host", host)
    if http is None:
        return
    if not http.get("paths"):
        problems.append(FieldError.required(f"{path}.http.paths"))
    for index, entry in enumerate(items(http, "paths")):
        _path(problems, f"{path}.http.paths[{index}]", entry)


def _path(problems: Problems, where: str, entry: Obj) -> None:
    kind, path = entry.get("pathType"), entry.get("path") or ""
    if kind is None:
        problems.append(FieldError.required(f"{where}.pathType", "pathType must be specified"))
        return
    if kind in ("Exact", "Prefix"):
        if not path.startswith("/"):
            problems.append(FieldError.invalid(f"{where}.path", path, "must be an absolute path"))
        for bad in _BAD_SEQUENCES:
            if bad in path:
                problems.append(FieldError.invalid(f"{where}.path", path, f"must not contain '{bad}'"))
        for bad in _BAD_ENDINGS:
            if path.endswith(bad):
                problems.append(FieldError.invalid(f"{where}.path", path, f"cannot end with '{bad}'"))
    elif kind == "ImplementationSpecific":
        if path and not path.startswith("/"):
            problems.append(FieldError.invalid(f"{where}.path", path, "must be an absolute path"))
    else:
        supported = ("Exact", "ImplementationSpecific", "Prefix")
        problems.append(FieldError.not_supported(f"{where}.pathType", kind, supported))
    _backend(problems, f"{where}.backend", entry.get("backend") or {})


def _backend(problems: Problems, path: str, backend: Obj) -> None:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        problems.append(FieldError.invalid(path, "", "cannot set both resource and service backends"))
    elif resource is not None:
        _object_reference(problems, f"{path}.resource", resource)
    elif service is not None:
        _service_backend(problems, path, service)
    else:
        problems.append(FieldError.invalid(path, "", "resource or service backend is required"))


def _service_backend(problems: Problems, path: str, service: Obj) -> None:
    name = service.get("name") or ""
    if checks.required(problems, f"{path}.service.name", name):
        checks.invalid_each(problems, f"{path}.service.name", name, names.label_1035_errors(name))
    port = service.get("port") or {}
    number, label = port.get("number") or 0, port.get("name") or ""
    if number and label:
        problems.append(FieldError.invalid(path, "", "cannot set both port name & port number"))
    elif label:
        checks.invalid_each(problems, f"{path}.service.port.name", label, checks.port_name_errors(label))
    elif number:
        checks.port_number(problems, f"{path}.service.port.number", number)
    else:
        problems.append(FieldError.required(path, "port name or number is required"))


def _object_reference(problems: Problems, path: str, reference: Obj) -> None:
    if reference.get("apiGroup") is not None:
        checks.subdomain(problems, f"{path}.apiGroup", reference["apiGroup"])
    for key in ("kind", "name"):
        value = reference.get(key) or ""
        if checks.required(problems, f"{path}.{key}", value):
            checks.invalid_each(problems, f"{path}.{key}", value, names.path_segment_errors(value))


def _validate_ingress_class(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    controller, parameters = spec.get("controller") or "", spec.get("parameters")
    if len(controller) > 250:
        problems.append(FieldError.too_long("spec.controller", 250))
    checks.domain_prefixed_path(problems, "spec.controller", controller)
    if parameters is not None:
        path = "spec.parameters"
        _object_reference(problems, path, parameters)
        scope, namespace = parameters.get("scope"), parameters.get("namespace") or ""
        if scope not in ("Cluster", "Namespace"):
            problems.append(FieldError.not_supported(f"{path}.scope", scope, ("Cluster", "Namespace")))
        elif scope == "Namespace":
            text = "`parameters.scope` is set to 'Namespace'"
            if checks.required(problems, f"{path}.namespace", namespace, text):
                checks.label(problems, f"{path}.namespace", namespace)
        elif parameters.get("namespace") is not None:
            text = "`parameters.scope` is set to 'Cluster'"
            problems.append(FieldError.forbidden(f"{path}.namespace", text))
    return problems


def _validate_ingress_class_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    now, was = ((obj.get("spec") or {}).get("controller") or "" for obj in (new, old))
    checks.immutable(problems, "spec.controller", now, was)
    return problems


def _validate_network_policy(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    checks.selector(problems, "spec.podSelector", spec.get("podSelector"))
    for side, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(items(spec, side)):
            path = f"spec.{side}[{index}]"
            checks.each(problems, f"{path}.ports", rule.get("ports"), _policy_port)
            checks.each(problems, f"{path}.{peers}", rule.get(peers), _policy_peer)
    types = items(spec, "policyTypes")
    if len(types) > 2:
        text = "may not specify more than two policyTypes"
        problems.append(FieldError.invalid("spec.policyTypes", types, text))
        return problems
    for index, kind in enumerate(types):
        checks.one_of(problems, f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))
    return problems


def _policy_port(problems: Problems, path: str, port: Obj) -> None:
    number, last = port.get("port"), port.get("endPort")
    if port.get("protocol") is not None:
        checks.one_of(problems, f"{path}.protocol", port["protocol"], ("TCP", "UDP", "SCTP"))
    if number is None:
        if last is not None:
            text = "may not be specified when `port` is not specified"
            problems.append(FieldError.invalid(f"{path}.endPort", last, text))
    elif isinstance(number, str):
        if last is not None:
            text = "may not be specified when `port` is non-numeric"
            problems.append(FieldError.invalid(f"{path}.endPort", last, text))
        checks.port_number_or_name(problems, f"{path}.port", number)
    else:
        checks.port_number(problems, f"{path}.port", number)
        if last is not None:
            if last < number:
                text = "must be greater than or equal to `port`"
                problems.append(FieldError.invalid(f"{path}.endPort", number, text))
            checks.port_number(problems, f"{path}.endPort", last)


def _policy_peer(problems: Problems, path: str, peer: Obj) -> None:
    selectors = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
    for key in selectors:
        checks.selector(problems, f"{path}.{key}", peer[key])
    block = peer.get("ipBlock")
    if block is not None:
        _ip_block(problems, f"{path}.ipBlock", block)
        if selectors:
            problems.append(FieldError.forbidden(path, "may not specify both ipBlock and another peer"))
    elif not selectors:
        problems.append(FieldError.required(path, "must specify a peer"))


def _ip_block(problems: Problems, path: str, block: Obj) -> None:
    network = block.get("cidr") or ""
    if not checks.required(problems, f"{path}.cidr", network):
        return
    checks.cidr(problems, f"{path}.cidr", network)
    if not checks.is_cidr(network):
        return
    for index, hole in enumerate(items(block, "except")):
        checks.cidr(problems, f"{path}.except[{index}]", hole)
        if checks.is_cidr(hole) and not checks.cidr_contains(network, hole):
            text = "must be a strict subset of `cidr`"
            problems.append(FieldError.invalid(f"{path}.except[{index}]", hole, text))


def _validate_address(obj: Obj) -> Problems:
    problems: Problems = []
    parent = (obj.get("spec") or {}).get("parentRef")
    if parent is None:
        return [FieldError.required("spec.parentRef")]
    checks.required(problems, "spec.parentRef.resource", parent.get("resource"))
    checks.required(problems, "spec.parentRef.name", parent.get("name"))
    return problems


def _validate_service_cidr(obj: Obj) -> Problems:
    problems: Problems = []
    networks = items(obj.get("spec"), "cidrs")
    checks.required(problems, "spec.cidrs", networks, "at least one CIDR required")
    checks.each(problems, "spec.cidrs", networks, checks.cidr)
    return problems


def _default_service_cidr(obj: Obj) -> None:
    part(obj, "spec")
    part(obj, "status")


def _address_name_errors(name: str, is_prefix: bool) -> list[str]:
    return [] if checks.is_ip(name) else ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]


def _ingress_warnings(obj: Obj) -> list[str]:
    if CLASS_ANNOTATION in annotations_of(obj) and (obj.get("spec") or {}).get("ingressClassName") is None:
        where = f"annotation {quoted(CLASS_ANNOTATION)}"
        return [f"{where} is deprecated, please use 'spec.ingressClassName' instead"]
    return []


STRATEGIES = {
    "ingresses.networking.k8s.io": Strategy(
        default=_default_ingress,
        validate=_validate_ingress,
        validate_create=_validate_new_ingress,
        warnings=_ingress_warnings,
    ),
    "ingressclasses.networking.k8s.io": Strategy(
        default=_default_ingress_class,
        validate=_validate_ingress_class,
        validate_update=_validate_ingress_class_update,
    ),
    "networkpolicies.networking.k8s.io": Strategy(default=_default_network_policy, validate=_validate_network_policy),
    "servicecidrs.networking.k8s.io": Strategy(default=_default_service_cidr, validate=_validate_service_cidr),
    "ipaddresses.networking.k8s.io": Strategy(validate=_validate_address, name_errors=_address_name_errors),
}
