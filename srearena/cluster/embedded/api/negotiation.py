"""What the client wants to read: JSON or YAML, objects, tables or bare metadata.

The choice is the first acceptable entry of the Accept header, as the real server takes it. Protobuf, which is slow to
write here, is offered to clients that accept nothing else: those that prefer it name JSON as their second choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
import yaml

from srearena.cluster.embedded.api import protobuf, protobuf_encoding
from srearena.cluster.embedded.registry.errors import NotAcceptable

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = protobuf.MEDIA_TYPE
_TEXTS = (JSON, YAML)
_OFFERED = (JSON, YAML, PROTOBUF)
_TRANSFORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_META_VERSIONS = ("v1", "v1beta1")


@dataclass(frozen=True, slots=True)
class Accepted:
    """One way to answer. `transform` is a kind of meta.k8s.io, or empty for the objects themselves."""

    content_type: str = JSON
    transform: str = ""
    version: str = "v1"
    pretty: bool = False

    def encode(self, obj: Any, pretty: bool = False) -> bytes:
        if self.content_type == YAML:
            return yaml.dump(obj, Dumper=_Dumper, sort_keys=False, allow_unicode=True).encode()
        if self.content_type == PROTOBUF:
            return _in_protobuf(protobuf_encoding.encode, obj)
        if pretty or self.pretty:
            return orjson.dumps(obj, option=orjson.OPT_INDENT_2) + b"\n"
        return orjson.dumps(obj) + b"\n"

    def encode_event(self, kind: str, obj: Any) -> bytes:
        """One event of a watch in protobuf."""
        return _in_protobuf(lambda document: protobuf_encoding.encode_event(kind, document), obj)

    @property
    def plain_json(self) -> bool:
        return self.content_type == JSON and not self.transform and not self.pretty


def _in_protobuf(encode: Callable[[Any], bytes], obj: Any) -> bytes:
    try:
        return encode(obj)
    except protobuf_encoding.NotEncodable:
        raise NotAcceptable(_TEXTS) from None


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Without anchors: an object may hold the same part twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@lru_cache(maxsize=1024)
def accepted(header: str, *, transforms: bool = True) -> Accepted:
    """The best answer to an Accept header; 406 where there is none."""
    wanted = entries(header)
    for offered in (_TEXTS, (PROTOBUF,)):
        for entry in wanted:
            found = _offer(*entry, offered, transforms=transforms)
            if found is not None:
                return found
    raise NotAcceptable(_OFFERED)


def entries(header: str) -> list[tuple[str, dict[str, str]]]:
    """Media types with their parameters, most wanted first."""
    if not header.strip():
        return [("*/*", {})]
    weighted = []
    for position, entry in enumerate(header.split(",")):
        kind, *rest = (part.strip() for part in entry.split(";"))
        parameters = {key.strip().lower(): value.strip() for key, _, value in (part.partition("=") for part in rest)}
        try:
            weight = float(parameters.pop("q", "1"))
        except ValueError:
            weight = 1.0
        weighted.append((-weight, position, kind.lower(), parameters))
    return [(kind, parameters) for _, _, kind, parameters in sorted(weighted, key=lambda item: item[:2])]


def _offer(kind: str, parameters: dict[str, str], offered: tuple[str, ...], *, transforms: bool) -> Accepted | None:
    if kind in ("*/*", "application/*"):
        kind = JSON
    if kind not in offered:
        return None
    transform = parameters.get("as", "")
    if transform and not transforms:
        return None
    if transform and (
        transform not in _TRANSFORMS
        or (transform == "Table" and kind == PROTOBUF)
        or parameters.get("g") != "meta.k8s.io"
        or parameters.get("v") not in _META_VERSIONS
    ):
        return None
    pretty = parameters.get("pretty") in ("1", "true")
    return Accepted(kind, transform, parameters.get("v", "v1"), pretty)
