"""Bodies of requests, decoded: JSON, YAML or protobuf in, plain dicts out, and a 400 for everything else.

Nothing that leaves here can blow up what comes after: the text is valid UTF-8, the nesting is bounded, aliases of
YAML were expanded within a budget, keys are strings and numbers are finite.
"""

from __future__ import annotations

import math
import re
from typing import Any

import orjson
import yaml

from srearena.cluster.embedded.api import protobuf
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import BadRequest, UnsupportedMediaType
from srearena.cluster.embedded.registry.json_reader import JsonSyntaxError, read_json
from srearena.yaml_documents import check_yaml, load_yaml

ACCEPTED = ("application/json", "application/yaml", protobuf.MEDIA_TYPE)
MAX_DEPTH = 200
_MOST_NODES = 1_000_000


def media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def decode(data: bytes, content_type: str) -> Any:
    """The document in a request's body."""
    kind = media_type(content_type) or "application/json"
    if kind not in ACCEPTED:
        raise UnsupportedMediaType(ACCEPTED)
    return _DECODERS[kind](data)


def decode_object(data: bytes, content_type: str) -> Obj:
    found = decode(data, content_type)
    if not isinstance(found, dict):
        what = "null" if found is None else {list: "array", str: "string", bool: "bool"}.get(type(found), "number")
        raise BadRequest(
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f'{what} into Go value of type struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    return found


def is_json(content_type: str) -> bool:
    return media_type(content_type) in ("", "application/json")


def decode_json(data: bytes, *, typed: bool = True) -> Any:
    """A JSON document; a typed one is an object with a kind, which the server looks for first and misses first."""
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        found = _reread(data, "couldn't get version/kind; json parse error: " if typed else "")
    # A document cannot be nested more deeply than it has brackets; only a rich one needs the walk.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        _check(found)
    return found


def _reread(data: bytes, prefix: str) -> Any:
    """Read once more what the fast parser refused: for the words of the refusal, or because it was too strict."""
    try:
        data.decode("utf-8")
        return read_json(data)
    except UnicodeDecodeError:
        raise BadRequest(f"{prefix}invalid UTF-8 in the request body") from None
    except JsonSyntaxError as problem:
        raise BadRequest(f"{prefix}{problem}") from None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as Kubernetes reads it: dates and base-60 numbers are just text, `1e3` is a number."""


_REPLACED = ("timestamp", "int", "float")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in _REPLACED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|[1-9][0-9_]*|0)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: _integer(loader.construct_scalar(node)))


def _integer(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-").replace("_", "")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def decode_yaml(data: bytes) -> Any:
    try:
        text = data.decode("utf-8")
        found = load_yaml(text, _Loader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise BadRequest(f"error converting YAML to JSON: yaml: {reason[:500]}") from None
    return _plain(found)


def repeated_yaml_keys(data: bytes) -> list[tuple[int, str]]:
    """The keys that a mapping of a YAML (or JSON) document has more than once, with the lines they stand in."""
    try:
        text = data.decode("utf-8")
        check_yaml(text)
        root = yaml.compose(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return []  # reading the text says what is wrong with it
    found: list[tuple[int, str]] = []
    nodes = [root] if root is not None else []
    seen: set[int] = set()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                nodes.append(value)
                if not isinstance(key, yaml.ScalarNode):
                    continue
                if key.value in keys:
                    found.append((key.start_mark.line + 1, str(key.value)))
                keys.add(key.value)
    return sorted(found)


def _plain(document: Any) -> Any:
    """The document as JSON would hold it: string keys, finite numbers, no shared parts."""
    budget = _MOST_NODES

    def plain(value: Any, depth: int) -> Any:
        nonlocal budget
        budget -= 1
        if depth > MAX_DEPTH or budget < 0:
            raise _too_much(depth)
        if isinstance(value, dict):
            return {_key(key): plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set):
            return [plain(item, depth + 1) for item in value]
        if isinstance(value, bytes):
            return value.decode("latin-1")
        if isinstance(value, float) and not math.isfinite(value):
            raise BadRequest(f"error converting YAML to JSON: json: unsupported value: {value}")
        return value

    return plain(document, 0)


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else "null" if key is None else str(key)


def _too_much(depth: int) -> BadRequest:
    return BadRequest("error decoding: exceeded max depth" if depth > MAX_DEPTH else "yaml: document is too large")


def _check(document: Any) -> None:
    """Refuse what is nested too deeply; walks without recursion."""
    level: list[Any] = [document]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(item for item in value.values() if isinstance(item, dict | list))
            elif isinstance(value, list):
                inner.extend(item for item in value if isinstance(item, dict | list))
        if not inner:
            return
        level = inner
    raise _too_much(MAX_DEPTH + 1)


_DECODERS = dict(zip(ACCEPTED, (decode_json, decode_yaml, protobuf.decode), strict=True))
