"""kubectl commands that repair, each with the command that takes it back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from clients.rules.changes import Difference
from clients.rules.hypotheses import Repair
from clients.rules.system import Obj, name_of, namespace_of

Path = Sequence[str | int]
_MISSING = object()


def _target(obj: Obj) -> str:
    group = str(obj["apiVersion"]).rpartition("/")[0]
    kind = str(obj["kind"]).lower() + (f".{group}" if "." in group and not group.endswith(".k8s.io") else "")
    where = f" -n {namespace_of(obj)}" if namespace_of(obj) else ""
    return f"{where} {{verb}} {kind} {name_of(obj)}"


def _line(obj: Obj, verb: str, rest: str = "") -> str:
    return f"kubectl{_target(obj).format(verb=verb)}{f' {rest}' if rest else ''}"


def _pointer(path: Path) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def _value(obj: Any, path: Path) -> Any:
    for part in path:
        try:
            obj = obj[part]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return obj


def patch(obj: Obj, changes: Iterable[tuple[Path, Any]]) -> Repair:
    """Set fields of an object; None removes a field. The way back restores their present values."""
    forward: list[Obj] = []
    back: list[Obj] = []
    for path, value in changes:
        present, pointer = _value(obj, path), _pointer(path)
        if value is None:
            if present is _MISSING:
                continue
            forward.append({"op": "remove", "path": pointer})
            back.insert(0, {"op": "add", "path": pointer, "value": present})
        else:
            forward.append({"op": "add" if present is _MISSING else "replace", "path": pointer, "value": value})
            back.insert(
                0,
                {"op": "remove", "path": pointer}
                if present is _MISSING
                else {"op": "replace", "path": pointer, "value": present},
            )
    return Repair(*(_line(obj, "patch", f"--type=json -p {shlex.quote(json.dumps(ops))}") for ops in (forward, back)))


def delete(obj: Obj) -> Repair:
    """Delete an object; taken back by creating it anew."""
    manifest = {key: value for key, value in obj.items() if key != "status"}
    manifest["metadata"] = {
        key: obj["metadata"][key] for key in ("name", "namespace", "labels", "annotations") if key in obj["metadata"]
    }
    undo = f"kubectl apply -f - <<EOF\n{json.dumps(manifest)}\nEOF" if obj["kind"] != "Pod" else ""
    return Repair(_line(obj, "delete"), undo)


def scale(workload: Obj, replicas: int) -> Repair:
    present = workload["spec"].get("replicas", 1)
    return Repair(_line(workload, "scale", f"--replicas={replicas}"), _line(workload, "scale", f"--replicas={present}"))


def restart(workload: Obj) -> Repair:
    kind, where = str(workload["kind"]).lower(), namespace_of(workload)
    return Repair(f"kubectl -n {where} rollout restart {kind}/{name_of(workload)}")


def apply(manifest: Obj) -> Repair:
    """Create or update an object; taken back by deleting it."""
    return Repair(f"kubectl apply -f - <<EOF\n{json.dumps(manifest)}\nEOF", _line(manifest, "delete"))


def revert(workload: Obj, differences: Iterable[Difference]) -> Repair:
    """Take back changes of a pod template, and only these: what else was rolled out since stays."""
    base = ("spec", "template", "spec")
    changes: list[tuple[Path, Any]] = []
    removals: list[tuple[Path, Any]] = []
    containers = workload["spec"]["template"]["spec"]["containers"]
    variables: dict[int, list[Obj]] = {}
    for one in differences:
        path = (*base, *one.path)
        if "env" in one.path:
            index = int(one.path[1])
            restored = variables.get(index, list(containers[index].get("env") or ()))
            name = (one.old or one.new)["name"]
            kept = [entry for entry in restored if entry["name"] != name]
            variables[index] = [*kept, one.old] if one.old else kept
        elif one.removed_container:
            changes.append(((*base, "containers", "-"), one.old))
        elif one.old is None:
            removals.append((path, None))
        else:
            changes.append((path, one.old))
    changes += [((*base, "containers", index, "env"), entries) for index, entries in variables.items()]
    # Later entries of a list first, so that the numbers of the others stay true.
    removals.sort(key=lambda change: [str(part).zfill(4) for part in change[0]], reverse=True)
    template = {"op": "replace", "path": "/spec/template", "value": workload["spec"]["template"]}
    back = _line(workload, "patch", f"--type=json -p {shlex.quote(json.dumps([template]))}")
    return Repair(patch(workload, [*changes, *removals]).command, back)
