"""ConfigMaps, Secrets and ServiceAccounts: what pods are given to read and to be."""

from __future__ import annotations

import base64
from typing import Any

from srearena.cluster.embedded.objects import Obj, annotations_of
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.json_reader import JsonSyntaxError, read_json
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill_empty, items, part
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

SIZE_LIMIT = 1024 * 1024
TOKEN = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
_PROMISED = "field is immutable when `immutable` is set"
_REDACTED = "<secret contents redacted>"
_DOCKER = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
# Keys that secrets of a type must have, and whether one of them is enough.
_REQUIRED_KEYS: dict[str, tuple[tuple[str, ...], bool]] = {
    "kubernetes.io/basic-auth": (("username", "password"), True),
    "kubernetes.io/ssh-auth": (("ssh-privatekey",), False),
    "kubernetes.io/tls": (("tls.crt", "tls.key"), False),
}


def _default_secret(obj: Obj) -> None:
    fill_empty(obj, {"type": "Opaque"})
    plain = obj.pop("stringData", None)
    if plain:
        part(obj, "data").update((key, base64.b64encode(str(text).encode()).decode()) for key, text in plain.items())


def _keep_secret_names_only(obj: Obj) -> None:
    """Of the secrets an account lists, only the names mean anything."""
    if obj.get("secrets"):
        obj["secrets"] = [{"name": secret.get("name", "")} for secret in items(obj, "secrets")]


def _prepare_account(obj: Obj, context: WriteContext) -> None:
    _keep_secret_names_only(obj)


def _prepare_account_update(new: Obj, old: Obj, context: WriteContext) -> None:
    _keep_secret_names_only(new)


def _default_config_map(obj: Obj) -> None:
    for key in ("data", "binaryData"):
        if key in obj and not obj[key]:
            del obj[key]


def _validate_config_map(obj: Obj) -> Problems:
    problems: Problems = []
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        checks.invalid_each(problems, f"data[{key}]", key, checks.config_key_errors(key))
        if key in binary:
            problems.append(FieldError.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(str(value).encode(errors="replace"))
    for key, value in binary.items():
        checks.invalid_each(problems, f"binaryData[{key}]", key, checks.config_key_errors(key))
        size += len(_decoded(value))
    if size > SIZE_LIMIT:
        problems.append(FieldError.too_long("[]", SIZE_LIMIT))
    return problems


def _validate_config_map_update(new: Obj, old: Obj) -> Problems:
    return _kept_as_promised(new, old, "data", "binaryData")


def _kept_as_promised(new: Obj, old: Obj, *keys: str) -> Problems:
    """What was declared immutable stays so."""
    problems: Problems = []
    if old.get("immutable"):
        if not new.get("immutable"):
            problems.append(FieldError.forbidden("immutable", _PROMISED))
        for key in keys:
            if (new.get(key) or {}) != (old.get(key) or {}):
                problems.append(FieldError.forbidden(key, _PROMISED))
    return problems


def _validate_secret(obj: Obj) -> Problems:
    problems: Problems = []
    data = obj.get("data") or {}
    size = 0
    for key, value in data.items():
        checks.invalid_each(problems, f"data[{key}]", key, checks.config_key_errors(key))
        size += len(_decoded(value))
    if size > SIZE_LIMIT:
        problems.append(FieldError.too_long("data", SIZE_LIMIT))
    kind = obj.get("type") or ""
    if kind == TOKEN and not annotations_of(obj).get(ACCOUNT_NAME):
        problems.append(FieldError.required(f"metadata.annotations[{ACCOUNT_NAME}]"))
    elif kind in _DOCKER:
        _docker_config(problems, _DOCKER[kind], data)
    elif kind in _REQUIRED_KEYS:
        required, any_will_do = _REQUIRED_KEYS[kind]
        missing = [key for key in required if key not in data]
        if missing and not (any_will_do and len(missing) < len(required)):
            problems += [FieldError.required(f"data[{key}]") for key in missing]
    return problems


def _docker_config(problems: Problems, key: str, data: Obj) -> None:
    if key not in data:
        problems.append(FieldError.required(f"data[{key}]"))
        return
    try:
        content = read_json(_decoded(data[key]))
    except JsonSyntaxError as problem:
        problems.append(FieldError.invalid(f"data[{key}]", _REDACTED, str(problem)))
        return
    if not isinstance(content, dict) and content is not None:
        kind = {list: "array", str: "string", bool: "bool"}.get(type(content), "number")
        text = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        problems.append(FieldError.invalid(f"data[{key}]", _REDACTED, text))


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(str(value), validate=False)
    except ValueError:
        return b""


def _validate_secret_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    checks.immutable(problems, "type", new.get("type"), old.get("type"))
    return [*problems, *_kept_as_promised(new, old, "data")]


STRATEGIES = {
    "configmaps": Strategy(
        default=_default_config_map,
        validate=_validate_config_map,
        validate_update=_validate_config_map_update,
    ),
    "secrets": Strategy(default=_default_secret, validate=_validate_secret, validate_update=_validate_secret_update),
    "serviceaccounts": Strategy(prepare_create=_prepare_account, prepare_update=_prepare_account_update),
}
