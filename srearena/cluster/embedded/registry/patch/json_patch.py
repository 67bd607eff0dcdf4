"""JSON patch (RFC 6902) with the leniencies of the library behind the API server.

Those are: indices may be negative and count from the end, `replace` may name a key that is not there, and the
part of a path before its first slash is not looked at. A patch that does not apply is refused with the one
sentence the server has for it; `why` keeps the library's own words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, copy_of
from srearena.cluster.embedded.registry.errors import ApiError, BadRequest, RequestEntityTooLarge
from srearena.cluster.embedded.registry.json_values import kind_of, owned, same, written
from srearena.cluster.embedded.registry.schema import Schema

MAX_OPERATIONS: Final = 10_000
#: How much the `copy` operations of one patch may add up to, so that a few of them cannot fill the memory.
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
_INDEX: Final = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_MISSING: Final = object()
_TEXT_FIELDS: Final = ("op", "path", "from")


class PatchRejected(ApiError):
    """A patch that is well formed and does not apply to the object."""

    code = 422
    reason = "Invalid"

    def __init__(self, why: str) -> None:
        super().__init__("the server rejected our request due to an error in our request")
        self.why = why


def apply_json_patch(current: Obj, operations: Any, schema: Schema | None = None) -> Obj:
    """`current` after all operations, or an error and nothing. The schema plays no part."""
    check_operations(operations)
    document = _Document(copy_of(current))
    for operation in operations or ():
        document.apply(operation)
    if not isinstance(document.root, dict):
        raise PatchRejected("the patched document is not an object")
    written(document.root)  # moving things about can nest them deeper than may be stored
    return document.root


def check_operations(operations: Any) -> list[str]:
    """What strict decoding finds in a patch that is otherwise well formed. Raises where it is not."""
    if not isinstance(operations, list):
        if operations is None:
            return []
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {kind_of(operations)} into Go value of type "
            "[]handlers.jsonPatchOp"
        )
    if len(operations) > MAX_OPERATIONS:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    strict: list[str] = []
    for index, operation in enumerate(operations):
        if not isinstance(operation, dict):
            raise BadRequest(
                f"error decoding patch: json: cannot unmarshal {kind_of(operation)} into Go value of type "
                "handlers.jsonPatchOp"
            )
        for field in _TEXT_FIELDS:
            value = operation.get(field)
            if value is not None and not isinstance(value, str):
                raise BadRequest(
                    f"error decoding patch: json: cannot unmarshal {kind_of(value)} into Go struct field "
                    f"jsonPatchOp.{field} of type string"
                )
        unknown = (key for key in operation if key not in _TEXT_FIELDS and key != "value")
        strict.extend(f"json patch unknown field {quoted(f'[{index}].{key}')}" for key in unknown)
    return strict


class _Document:
    """A document being changed in place; it owns everything in it."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._copied = 0
        self._operations: dict[str, Callable[[Obj], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def apply(self, operation: Obj) -> None:
        kind = operation.get("op")
        perform = self._operations.get(kind or "")
        if perform is None:
            raise PatchRejected(f"Unexpected kind: {kind or 'unknown'}")
        perform(operation)

    def _find(self, path: str) -> tuple[Any, str]:
        """The container that the last part of the path is in, and that part; no container where there is none."""
        parts = path.split("/")
        if len(parts) < 2:
            return None, ""
        here = self.root
        for part in parts[1:-1]:
            here = _get(here, _unescaped(part))
            if not isinstance(here, dict | list):
                return None, ""
        return here, _unescaped(parts[-1])

    def _add(self, operation: Obj) -> None:
        path = _text(operation, "path", "add operation failed to decode path: missing value")
        container, key = self._find(path)
        if container is None:
            raise PatchRejected(f'add operation does not apply: doc is missing path: "{path}": missing value')
        _insert(container, key, owned(operation.get("value")), f"error in add for path: '{path}'")

    def _remove(self, operation: Obj) -> None:
        path = _text(operation, "path", "remove operation failed to decode path: missing value")
        container, key = self._find(path)
        if container is None:
            raise PatchRejected(f'remove operation does not apply: doc is missing path: "{path}": missing value')
        _delete(container, key, f"error in remove for path: '{path}'")

    def _replace(self, operation: Obj) -> None:
        path = _text(
            operation, "path", "replace operation failed to decode path: operation missing path field: missing value"
        )
        value = owned(operation.get("value"))
        if path == "":
            # The library means to refuse a scalar here, and by an oversight passes over it.
            if isinstance(value, dict | list):
                self.root = value
            return
        container, key = self._find(path)
        if container is None:
            raise PatchRejected(f"replace operation does not apply: doc is missing path: {path}: missing value")
        if isinstance(container, dict):
            container[key] = value
            return
        index = _index(key, len(container))
        if index is None:
            raise PatchRejected(f"replace operation does not apply: doc is missing key: {path}: missing value")
        container[index] = value

    def _value_at(self, operation: Obj, verb: str) -> tuple[Any, str, Any]:
        origin = _text(
            operation, "from", f"{verb} operation failed to decode from: operation, missing from field: missing value"
        )
        container, key = self._find(origin)
        if container is None:
            raise PatchRejected(f"{verb} operation does not apply: doc is missing from path: {origin}: missing value")
        value = _get(container, key)
        if value is _MISSING and isinstance(container, list):
            where = f"path: '{key}'" if verb == "move" else f"from: '{origin}'"
            raise PatchRejected(f"error in {verb} for {where}: {_bad_index(key)}")
        return container, key, value

    def _destination(self, operation: Obj, verb: str) -> tuple[Any, str, str]:
        why = "operation missing path field: missing value" if verb == "move" else "missing value"
        path = _text(operation, "path", f"{verb} operation failed to decode path: {why}")
        container, key = self._find(path)
        if container is None:
            raise PatchRejected(
                f"{verb} operation does not apply: doc is missing destination path: {path}: missing value"
            )
        return container, key, path

    def _move(self, operation: Obj) -> None:
        container, key, value = self._value_at(operation, "move")
        _delete(container, key, f"error in move for path: '{key}'")
        container, key, path = self._destination(operation, "move")
        _insert(container, key, value, f"error in move for path: '{path}'")

    def _copy(self, operation: Obj) -> None:
        _, _, value = self._value_at(operation, "copy")
        container, key, _ = self._destination(operation, "copy")
        value = None if value is _MISSING else value
        self._copied += len(written(value))
        if self._copied > MAX_COPIED_BYTES:
            raise PatchRejected(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied}, "
                f"exceeding the limit {MAX_COPIED_BYTES}"
            )
        _insert(container, key, owned(value), "error while adding value during copy")

    def _test(self, operation: Obj) -> None:
        path = _text(
            operation, "path", "test operation failed to decode path: operation missing path field: missing value"
        )
        if path == "":
            found: Any = self.root
        else:
            container, key = self._find(path)
            if container is None:
                raise PatchRejected(f"test operation does not apply: is missing path: {path}: missing value")
            found = _get(container, key)
            if found is _MISSING:
                if isinstance(container, list):
                    raise PatchRejected(f"error in test for path: '{path}': {_bad_index(key)}")
                found = None
        written(found)
        if "value" not in operation or not same(found, operation["value"]):
            raise PatchRejected(f"testing value {path} failed: test failed")


def _text(operation: Obj, field: str, otherwise: str) -> str:
    value = operation.get(field)
    if not isinstance(value, str):
        raise PatchRejected(otherwise)
    return value


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def _index(key: str, length: int) -> int | None:
    """The position a key means in a list of that length, counting from the end where negative."""
    if not _INDEX.fullmatch(key):
        return None
    index = int(key)
    if not -length <= index < length:
        return None
    return index % length


def _bad_index(key: str) -> str:
    if _INDEX.fullmatch(key):
        return f"Unable to access invalid index: {int(key)}: invalid index referenced"
    return f"strconv.Atoi: parsing {quoted(key)}: invalid syntax"


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key, _MISSING)
    index = _index(key, len(container))
    return _MISSING if index is None else container[index]


def _insert(container: Any, key: str, value: Any, context: str) -> None:
    value = None if value is _MISSING else value
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        index = _index(key, len(container) + 1)
        if index is None:
            proper = "" if _INDEX.fullmatch(key) else f"value was not a proper array index: '{key}': "
            raise PatchRejected(f"{context}: {proper}{_bad_index(key)}")
        container.insert(index, value)


def _delete(container: Any, key: str, context: str) -> None:
    if isinstance(container, dict):
        if key not in container:
            raise PatchRejected(f"{context}: Unable to remove nonexistent key: {key}: missing value")
        del container[key]
        return
    index = _index(key, len(container))
    if index is None:
        raise PatchRejected(f"{context}: {_bad_index(key)}")
    del container[index]
