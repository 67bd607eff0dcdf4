"""Probes and lifecycle hooks of containers."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import items

_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES = ("HTTP", "HTTPS")


def probes(problems: Problems, path: str, container: Obj, grace: int) -> None:
    probe = container.get("livenessProbe")
    if probe is not None:
        _once_successful(problems, f"{path}.livenessProbe", probe, grace)
    probe = container.get("readinessProbe")
    if probe is not None:
        where = f"{path}.readinessProbe"
        _probe(problems, where, probe, grace)
        if probe.get("terminationGracePeriodSeconds") is not None:
            problems.append(
                FieldError.invalid(
                    f"{where}.terminationGracePeriodSeconds",
                    probe["terminationGracePeriodSeconds"],
                    "must not be set for readinessProbes",
                )
            )
    probe = container.get("startupProbe")
    if probe is not None:
        _once_successful(problems, f"{path}.startupProbe", probe, grace)


def lifecycle(problems: Problems, path: str, hooks: Obj, grace: int) -> None:
    for key in ("postStart", "preStop"):
        hook = hooks.get(key)
        if hook is not None:
            _handler(problems, f"{path}.{key}", hook, _HOOK_HANDLERS, grace)


def _once_successful(problems: Problems, path: str, probe: Obj, grace: int) -> None:
    _probe(problems, path, probe, grace)
    if probe.get("successThreshold") != 1:
        problems.append(FieldError.invalid(f"{path}.successThreshold", probe.get("successThreshold") or 0, "must be 1"))


def _probe(problems: Problems, path: str, probe: Obj, grace: int) -> None:
    _handler(problems, path, probe, _PROBE_HANDLERS, grace)
    for key in _NUMBERS:
        value = probe.get(key)
        if value is not None and value < 0:
            problems.append(FieldError.invalid(f"{path}.{key}", value, checks.NEGATIVE))
    own = probe.get("terminationGracePeriodSeconds")
    if own is not None and own <= 0:
        problems.append(FieldError.invalid(f"{path}.terminationGracePeriodSeconds", own, "must be greater than 0"))


def _handler(problems: Problems, path: str, holder: Obj, kinds: tuple[str, ...], grace: int) -> None:
    found = ""
    for kind in kinds:
        action = holder.get(kind)
        if action is None:
            continue
        if found:
            problems.append(FieldError.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type"))
            continue
        found = kind
        _action(problems, f"{path}.{kind}", kind, action, grace)
    if not found:
        problems.append(FieldError.required(path, "must specify a handler type"))


def _action(problems: Problems, path: str, kind: str, action: Obj, grace: int) -> None:
    if kind == "httpGet":
        _http_get(problems, path, action)
    elif kind == "exec":
        if not action.get("command"):
            problems.append(FieldError.required(f"{path}.command"))
    elif kind == "sleep":
        seconds = action.get("seconds") or 0
        if not 0 <= seconds <= grace:
            text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            problems.append(FieldError.invalid(path, seconds, text))
    else:
        checks.port_number_or_name(problems, f"{path}.port", action.get("port"))


def _http_get(problems: Problems, path: str, action: Obj) -> None:
    if not action.get("path"):
        problems.append(FieldError.required(f"{path}.path"))
    checks.port_number_or_name(problems, f"{path}.port", action.get("port"))
    checks.one_of(problems, f"{path}.scheme", action.get("scheme"), _SCHEMES)
    for header in items(action, "httpHeaders"):
        name = header.get("name") or ""
        checks.invalid_each(problems, f"{path}.httpHeaders", name, checks.header_name_errors(name))
