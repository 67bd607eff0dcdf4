"""The kubelet's configuration file: read when the kubelet starts, refused as the real one refuses it.

Settings without a counterpart in the simulator are kept and shown (`configz`), and have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import yaml

from srearena.cluster.embedded.durations import DurationError, parse_duration
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.machine.files import host_tree
from srearena.cluster.embedded.machine.files.host_tree import make_folders
from srearena.cluster.embedded.machine.files.inodes import Directory, File, Generated
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.quantity import QuantityError, units

PATH: Final = "/var/lib/kubelet/config.yaml"
AUTHORITY_PATH: Final = "/etc/kubernetes/pki/ca.crt"
API_VERSION: Final = "kubelet.config.k8s.io/v1beta1"
KIND: Final = "KubeletConfiguration"
RUNTIME_ENDPOINT: Final = "unix:///run/containerd/containerd.sock"
RUNTIME_ENDPOINTS: Final = ("", RUNTIME_ENDPOINT, "unix:///var/run/containerd/containerd.sock")
DEFAULT_PODS: Final = 110
DEFAULT_TEXT: Final = f"""\
apiVersion: {API_VERSION}
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: {AUTHORITY_PATH}
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
cgroupRoot: /kubelet
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
healthzBindAddress: 127.0.0.1
healthzPort: 10248
kind: {KIND}
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
"""
"""As kubeadm writes it, into the file of every node and into a ConfigMap."""
HARD_THRESHOLDS: Final = {
    "imagefs.available": "15%",
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
}
SIGNALS: Final = (*HARD_THRESHOLDS, "imagefs.inodesFree", "allocatableMemory.available", "pid.available")
_DEFAULTS: Final[Obj] = {
    "enableServer": True,
    "syncFrequency": "1m0s",
    "fileCheckFrequency": "20s",
    "address": "0.0.0.0",
    "port": 10250,
    "nodeStatusUpdateFrequency": "10s",
    "nodeStatusReportFrequency": "5m0s",
    "nodeLeaseDurationSeconds": 40,
    "imageGCHighThresholdPercent": 85,
    "imageGCLowThresholdPercent": 80,
    "cgroupsPerQOS": True,
    "maxPods": DEFAULT_PODS,
    "podPidsLimit": -1,
    "cpuCFSQuota": True,
    "containerLogMaxSize": "10Mi",
    "containerLogMaxFiles": 5,
    "evictionHard": HARD_THRESHOLDS,
    "evictionPressureTransitionPeriod": "5m0s",
    "enableControllerAttachDetach": True,
    "makeIPTablesUtilChains": True,
    "serializeImagePulls": True,
    "failSwapOn": True,
    "enableDebuggingHandlers": True,
    "enableSystemLogHandler": True,
}
_NUMBERS: Final = ("maxPods", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "nodeLeaseDurationSeconds")
_MAPPINGS: Final = ("evictionHard", "kubeReserved", "systemReserved")
_LISTS: Final = ("clusterDNS",)
_TEXTS: Final = ("clusterDomain", "staticPodPath", "containerRuntimeEndpoint", "evictionPressureTransitionPeriod")


class ConfigurationRefused(Exception):
    """The kubelet ends at its start; the message is the error that it logs."""


@dataclass(frozen=True, slots=True)
class Configuration:
    max_pods: int = DEFAULT_PODS
    name_servers: tuple[str, ...] = ()
    domain: str = ""
    thresholds: Mapping[str, str] = field(default_factory=lambda: HARD_THRESHOLDS)
    """Hard eviction thresholds by signal: an amount, or a share in per cent."""
    transition_seconds: float = 300.0
    """How long a pressure condition outlives its signal."""
    reserved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Amounts of a resource that pods may not use, for the system and for the kubelet."""
    document: Obj = field(default_factory=dict)
    """All settings, with their defaults."""

    def threshold(self, signal: str, capacity: int) -> int:
        """Below which amount a signal is under pressure; 0 without a threshold."""
        text = self.thresholds.get(signal, "")
        if text.endswith("%"):
            return int(capacity * float(text[:-1]) / 100)
        return units(text) if text else 0


def write(machine: Machine) -> None:
    """The files of a machine that its kubelet needs, as an installer leaves them."""
    pods = f"maxPods: {machine.spec.pods}\n" if machine.spec.pods != DEFAULT_PODS else ""
    put_file(machine, PATH, DEFAULT_TEXT.replace("rotateCertificates", f"{pods}rotateCertificates"))
    folder, _, name = AUTHORITY_PATH.rpartition("/")
    certificate = Generated(lambda: machine.root_certificate, 0o644)
    make_folders(_root(machine), folder).put(name, certificate)


def put_file(machine: Machine, path: str, text: str) -> None:
    folder, _, name = path.rpartition("/")
    make_folders(_root(machine), folder).put(name, File(text.encode(), 0o644, mtime=machine.clock.now))


def _root(machine: Machine) -> Directory:
    root = machine.files.root
    assert isinstance(root, Directory)
    return root


def keep_disk_free(machine: Machine, share: float) -> None:
    """Set the threshold of the disk in the file, or remove it (0)."""
    found = host_tree.find(_root(machine), PATH)
    document = yaml.safe_load(found.content) if isinstance(found, File) else {}
    document.pop("evictionHard", None)
    if share > 0:
        # Thresholds that a file leaves out are none, so that the others stand there too.
        document["evictionHard"] = {**HARD_THRESHOLDS, "nodefs.available": f"{min(share, 1.0) * 100:g}%"}
    put_file(machine, PATH, yaml.safe_dump(document))


def load(machine: Machine) -> Configuration:
    """What the file says now; ConfigurationRefused where the kubelet cannot start with it."""
    found = host_tree.find(_root(machine), PATH)
    if not isinstance(found, File):
        missing = f'failed to read kubelet config file "{PATH}", error: open {PATH}: no such file or directory'
        raise _unreadable(missing)
    configuration = parsed(found.content)
    authority = dig(configuration.document, "authentication", "x509", "clientCAFile", default="")
    if authority and not isinstance(host_tree.find(_root(machine), authority), File | Generated):
        raise ConfigurationRefused(
            "failed to construct kubelet dependencies: unable to load client CA file "
            f"{authority}: open {authority}: no such file or directory"
        )
    endpoint = configuration.document.get("containerRuntimeEndpoint") or ""
    if endpoint not in RUNTIME_ENDPOINTS:
        socket = endpoint.removeprefix("unix://")
        dialled = f"dial unix {socket}: connect: no such file or directory"
        raise ConfigurationRefused(
            "failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint "
            f"{quoted(endpoint)}: rpc error: code = Unavailable desc = connection error: "
            f'desc = "transport: Error while dialing: {dialled}"'
        )
    return configuration


def _unreadable(why: str) -> ConfigurationRefused:
    return ConfigurationRefused(
        f"failed to load kubelet config file, path: {PATH}, error: failed to load Kubelet config file {PATH}, "
        f"error {why}"
    )


@lru_cache(maxsize=64)
def parsed(content: bytes) -> Configuration:
    """The configuration in a file of that content."""
    try:
        document = yaml.safe_load(content)
    except yaml.MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark is not None else 0
        raise _unreadable(
            f"failed to decode: error converting YAML to JSON: yaml: line {line}: {problem.problem}"
        ) from None
    except yaml.YAMLError:
        raise _unreadable(
            "failed to decode: error converting YAML to JSON: yaml: control characters are not allowed"
        ) from None
    if not isinstance(document, dict) or not document.get("kind"):
        raise _unreadable("failed to decode: Object 'Kind' is missing in the file")
    version, kind = document.get("apiVersion"), document["kind"]
    if (version, kind) != (API_VERSION, KIND):
        scheme = '"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme/scheme.go:33"'
        known = f'no kind "{kind}" is registered for version "{version}" in scheme {scheme}'
        raise _unreadable(f"failed to decode: {known}")
    _check_types(document)
    return _checked({**_DEFAULTS, **document})


def _check_types(document: Obj) -> None:
    wanted: dict[str, tuple[type, str]] = {
        **dict.fromkeys(_NUMBERS, (int, "int32")),
        **dict.fromkeys(_MAPPINGS, (dict, "map[string]string")),
        **dict.fromkeys(_LISTS, (list, "[]string")),
        **dict.fromkeys(_TEXTS, (str, "string")),
    }
    for name, (kind, go_type) in wanted.items():
        value = document.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise _mismatch(name, value, go_type)
    for name in _MAPPINGS:
        for key, value in (document.get(name) or {}).items():
            if not isinstance(value, str):
                raise _mismatch(f"{name}.{key}", value, "string")


def _mismatch(name: str, value: Any, go_type: str) -> ConfigurationRefused:
    kinds = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return _unreadable(
        f"failed to decode: json: cannot unmarshal {kinds.get(type(value), 'value')} into Go struct field "
        f"{KIND}.{name} of type {go_type}"
    )


def _checked(document: Obj) -> Configuration:
    problems = []
    if document["maxPods"] < 0:
        problems.append(f"invalid configuration: maxPods (--max-pods) {document['maxPods']} must not be negative")
    high, low = document["imageGCHighThresholdPercent"], document["imageGCLowThresholdPercent"]
    if low >= high:
        problems.append(
            f"invalid configuration: imageGCLowThresholdPercent (--image-gc-low-threshold) {low} must be less than "
            f"imageGCHighThresholdPercent (--image-gc-high-threshold) {high}"
        )
    if problems:
        raise ConfigurationRefused(
            f"failed to validate kubelet configuration, error: [{', '.join(problems)}], "
            "path: &TypeMeta{Kind:,APIVersion:,}"
        )
    for signal, text in document["evictionHard"].items():
        _check_threshold(signal, text)
    try:
        seconds = parse_duration(document["evictionPressureTransitionPeriod"])
    except DurationError as problem:
        raise _unreadable(f"failed to decode: {problem}") from None
    reserved = [document.get(name) or {} for name in ("kubeReserved", "systemReserved")]
    return Configuration(
        max_pods=document["maxPods"],
        name_servers=tuple(document.get("clusterDNS") or ()),
        domain=document.get("clusterDomain") or "",
        thresholds=document["evictionHard"],
        transition_seconds=seconds,
        reserved={
            name: tuple(amounts[name] for amounts in reserved if name in amounts)
            for name in ("cpu", "memory", "ephemeral-storage")
        },
        document=document,
    )


def _check_threshold(signal: str, text: str) -> None:
    if signal not in SIGNALS:
        raise ConfigurationRefused(f"failed to run Kubelet: unsupported eviction signal {signal}")
    try:
        share = float(text[:-1]) if text.endswith("%") else None
        if share is None:
            units(text)
    except (ValueError, QuantityError):
        raise ConfigurationRefused(
            "failed to run Kubelet: quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None
    if share is not None and not 0 <= share <= 100:
        bound = "must be positive" if share < 0 else "must be less than 100%"
        raise ConfigurationRefused(f"failed to run Kubelet: eviction percentage threshold {signal} {bound}: {text}")
