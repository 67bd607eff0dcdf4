"""Identity of programs: whether the pods of a workload still run what was declared.

What a program *is* belongs to its identity: image, command, arguments, working directory, init containers, the volumes
that hold its data, the variables by which code is found or loaded, and the Services it calls. How it is *scheduled,
probed and supplied* does not: replicas, probes, resources, tolerations, node selectors, labels, the name of a ConfigMap
or volume, a literal value in place of a reference, a digest in place of a tag, an added sidecar.

Why it cannot be gamed: an idle or stand-in program differs in image or command; one that is put in place of the real
one, by a mount over it or a hook that starts it, is an added mount or hook; one that is found or loaded in place of it,
or of a tool that it or its probes run, needs a search path, an agent or a preloaded library; one that answers beside
the real one needs a container that was not declared and a program that was kept from its port; and one behind another
name needs a changed address of a dependency, or a name resolved elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping

from srearena.conductor.grading.images import runs, same_program
from srearena.conductor.grading.pod_templates import Settings
from srearena.service.kubernetes import Obj

_TOKENS = re.compile(r"[A-Za-z0-9-]+")
_NAMES = re.compile(r"(?<![A-Za-z0-9.-])([a-z0-9-]+)(?:\.([a-z0-9-]+))?")
_HOSTS = re.compile(r"(?:(?<=//)|(?<![A-Za-z0-9.-])(?=[a-z0-9.-]+:\d))([a-z0-9-]+)(?:\.([a-z0-9-]+))?")
"""Hosts in the text of a settings file: before a port, or after the scheme of a URL."""
_SETTING_FOLDERS = ("/etc/", "/tmp/", "/var/", "/run/", "/dev/", "/mnt/", "/data/", "/config/", "/secrets/", "/cache/")
"""Where an added mount holds settings or scratch data. Elsewhere it can cover the program."""
_CODE_FILES = re.compile(
    r"/etc(/(hosts|resolv\.conf|nsswitch\.conf|ld\.so\.[^/]*|profile[^/]*|bash[^/]*|environment|alternatives)(/.*)?)?"
)
"""Files in a folder of settings by which programs and libraries are found, and names resolved."""
_CODE_VARIABLES = re.compile(
    r"PATH|LD_\w+|GCONV_PATH|BASH_ENV|BASH_FUNC_.*|CLASSPATH|JAVA_HOME|NODE_PATH|PYTHON(PATH|HOME|STARTUP|USERBASE)|"
    r"RUBY(LIB|OPT)|GEM_(HOME|PATH)|PERL5(LIB|OPT)|LUA_(INIT|C?PATH)(_5_\d)?|PHP_INI_SCAN_DIR|PHPRC|"
    r"DOTNET_(STARTUP_HOOKS|ADDITIONAL_DEPS|SHARED_STORE)|COR(ECLR)?_PROFILER\w*"
)
"""Variables by which dynamic linker, shell and language runtimes find or load code."""
_OPTION_VARIABLES = re.compile(r"\w*OPT(ION)?S")
"""Variables with options of a runtime (`NODE_OPTIONS`, `JAVA_TOOL_OPTIONS`): most of these only tune it."""
_CODE_OPTION = re.compile(
    r"(?:^|\s)(--(?:require|import|loader|experimental-loader|env-file|class-path|module-path|patch-module|jar)\b\S*|"
    r"-(?:javaagent|agentpath|agentlib|Xbootclasspath|XX:On\w+|XX:Flags|XX:VMOptionsFile)\b\S*|"
    r"-(?:r|cp|classpath|jar)(?=\s)|@\S+)(\s+[^\s-]\S*)?"
)
"""An option that has a runtime load or run something, with its value."""
_GROUPS = ("containers", "initContainers")


class Addresses:
    """The Services that settings name: those of the healthy application, and where they are now."""

    def __init__(self, names: Collection[str], cluster_ips: Mapping[str, str], namespace: str = "") -> None:
        self._names = frozenset(names)
        self._cluster_ips = cluster_ips
        self._namespace = namespace

    def lost(self, before: str, now: str) -> list[str]:
        """The Services that a value named, and that another value does not lead to any more."""
        named = set(_TOKENS.findall(before)) & self._names
        return [] if before == now else self._unreached(named, _NAMES.findall(now), now)

    def lost_from_file(self, before: str, now: str) -> list[str]:
        """As `lost`, for a file, in which only addresses count: a name with a port, or in a URL."""
        if before == now:
            return []
        own = ("", self._namespace)  # `flagd.dev` is a host elsewhere, whatever Services there are
        named = {name for name, qualifier in _HOSTS.findall(before) if qualifier in own} & self._names
        return self._unreached(named, _HOSTS.findall(now), now)

    def _unreached(self, named: set[str], hosts: list[tuple[str, str]], now: str) -> list[str]:
        """The Services that neither a host in their own namespace nor their address stands for."""
        unreached = []
        for name in sorted(named):
            namespaces = {qualifier for host, qualifier in hosts if host == name}
            ip = self._cluster_ips.get(name)
            by_address = bool(ip) and re.search(rf"(?<![0-9.]){re.escape(str(ip))}(?![0-9.])", now) is not None
            if namespaces - {"", self._namespace} or not (namespaces or by_address):
                unreached.append(name)
        return unreached

    def leads(self, ip: str, names: Collection[str]) -> bool:
        """Whether an address is that of all these Services."""
        return bool(ip) and all(self._cluster_ips.get(name) == ip for name in names)

    def names(self, text: str) -> set[str]:
        return set(_TOKENS.findall(text)) & self._names


def template_complaints(
    label: str, before: Obj, now: Obj, addresses: Addresses, *, at_fault: bool = False
) -> Iterator[str]:
    """Compare the pod template of a workload with the healthy one; both are resolved (`pod_templates.Templates`).

    A component `at_fault` may have other arguments: a repair can be a setting (a password, a limit), and whether the
    program works with it shows in its behaviour. It may not have another program in their place.
    """
    for group in _GROUPS:
        for name, container in (before.get(group) or {}).items():
            current = (now.get(group) or {}).get(name)
            if current is None:
                kind = "init container" if group == "initContainers" else "container"
                yield f"{label} has lost its {kind} {name}"
                continue
            fields = ("command", "workingDir") if at_fault else ("command", "args", "workingDir")
            yield from _program(label, name, container, current, fields)
            yield from _mounts(label, name, container["mounts"], current["mounts"])
    yield from _resolution(label, before, now, addresses)
    if _altered(before, now):
        for group, name in _added_containers(before, now):
            yield f"{label}: container {name} was added to {group} of a program that is itself changed"


def address_complaints(label: str, before: Settings, now: Settings, addresses: Addresses) -> Iterator[str]:
    """Compare the dependencies in a program's settings with the healthy ones; both with their actual content."""
    for variable, value in before.variables.items():
        for service in addresses.lost(value, now.variables.get(variable, "")):
            yield f"{label}: {variable[1]} does not lead to {service} any more"
    for path, text in before.files.items():
        for service in addresses.lost_from_file(text, now.files.get(path, "")):
            yield f"{label}: {path[1]} does not lead to {service} any more"


def _program(label: str, name: str, before: Obj, now: Obj, fields: tuple[str, ...]) -> Iterator[str]:
    if not same_program(str(now.get("image", "")), str(before.get("image", ""))):
        yield f"{label}: container {name} runs {now.get('image')}, another program than {before.get('image')}"
        return
    words, declared = ([str(word) for word in state.get("args") or ()] for state in (now, before))
    program = "" if now.get("command") else runs(str(now.get("image", "")), words)
    if program and program != runs(str(before.get("image", "")), declared) and words[:1] != declared[:1]:
        yield f"{label}: container {name} has arguments that run {program}"
    for field in fields:
        if (now.get(field) or None) != (before.get(field) or None):
            yield f"{label}: container {name} has another {field} than declared: {_short(now.get(field))}"
    for variable in _loading(before.get("env") or {}, now.get("env") or {}):
        yield f"{label}: container {name} finds or loads other code than declared, by {variable}"
    if (now.get("lifecycle") or {}).get("postStart") != (before.get("lifecycle") or {}).get("postStart"):
        yield f"{label}: container {name} starts something else with a postStart hook"


def _loading(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """The variables by which a program may find or load other code than before."""
    for variable in sorted(before.keys() | now.keys()):
        old, new = before.get(variable, ""), now.get(variable, "")
        if _CODE_VARIABLES.fullmatch(variable):
            if new != old:
                yield variable
        elif _OPTION_VARIABLES.fullmatch(variable):
            declared = _CODE_OPTION.findall(old)
            if any(option not in declared for option in _CODE_OPTION.findall(new)):
                yield variable


def _mounts(label: str, name: str, before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for path, source in before.items():
        if not _holds_data(source):
            continue
        if path not in now:
            yield f"{label}: container {name} does not mount {_source(source)} at {path} any more"
        elif now[path] != source:
            yield f"{label}: container {name} has {_source(now[path])} at {path} instead of {_source(source)}"
    for path in now:
        if path in before:
            continue
        if any(f"{path}/".startswith(f"{other}/") for other, source in before.items() if _holds_data(source)):
            yield f"{label}: container {name} has another mount inside its data, at {path}"
        elif not f"{path}/".startswith(_SETTING_FOLDERS) or _CODE_FILES.fullmatch(path.rstrip("/")):
            yield f"{label}: container {name} has a new mount at {path}, over its program"


def _resolution(label: str, before: Obj, now: Obj, addresses: Addresses) -> Iterator[str]:
    """Names that the pods resolve by themselves instead of by the cluster's DNS."""
    known = json.dumps(before.get("hostAliases") or [])
    for alias in now.get("hostAliases") or ():
        names = addresses.names(" ".join(alias.get("hostnames") or ()))
        if names and alias.get("ip", "") not in known and not addresses.leads(alias.get("ip", ""), names):
            yield f"{label} resolves {', '.join(sorted(names))} by its own hosts file"


def _added_containers(before: Obj, now: Obj) -> list[tuple[str, str]]:
    return [
        (group, name) for group in _GROUPS for name in (now.get(group) or {}) if name not in (before.get(group) or {})
    ]


def _altered(before: Obj, now: Obj) -> bool:
    """Whether a declared container is set up in another way than before, so that it may not listen where it did."""
    fields = ("command", "args", "env", "mounts")
    return any(
        (container.get(field) or None) != (((now.get(group) or {}).get(name) or {}).get(field) or None)
        for group in _GROUPS
        for name, container in (before.get(group) or {}).items()
        for field in fields
    )


def _holds_data(source: str) -> bool:
    return "persistentVolumeClaim" in source or "volumeClaimTemplate" in source


def _source(source: str) -> str:
    volume = json.loads(source)
    claim = volume.get("persistentVolumeClaim") or {}
    if claim:
        return f"the claim {claim.get('claimName')}"
    return next((key for key in volume if key != "subPath"), "nothing")


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else f"{text[:120]}..."
