"""The commands. Each does with the API what the real one does, and says it in the same words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import yaml

from srearena.cluster.embedded.objects import Obj, annotations_of, labels_of, name_of
from srearena.cluster.embedded.programs.toolboxes.cluster_api import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    ApiFailure,
    ApiPath,
)
from srearena.cluster.embedded.programs.toolboxes.kubectl.errors import KubectlError, from_server
from srearena.cluster.embedded.programs.toolboxes.kubectl.printing import (
    TABLE,
    json_text,
    table_text,
    template_text,
    yaml_text,
)
from srearena.cluster.embedded.programs.toolboxes.kubectl.resources import Kind
from srearena.cluster.embedded.programs.toolboxes.kubectl.rollouts import rollout, wait
from srearena.cluster.embedded.programs.toolboxes.kubectl.session import FIELD_MANAGER, Session
from srearena.yaml_documents import load_yaml

Command = Callable[[Session], Awaitable[None]]
_PATCHES = {"strategic": STRATEGIC_PATCH, "merge": MERGE_PATCH, "json": JSON_PATCH}


async def get(session: Session) -> None:
    output = session.arguments.get("output")
    targets = await session.named(session.arguments.words)
    if output in ("", "wide"):
        await _get_table(session, targets, wide=output == "wide")
        return
    found: list[tuple[Kind, Obj]] = []
    for kind, name in targets:
        if not name:
            listed = await session.listed(kind)
            found += [(kind, {"apiVersion": _api(kind), "kind": kind.kind, **item}) for item in listed["items"]]
            continue
        try:
            found.append((kind, await session.api.call("GET", kind.path(session.namespace, name))))
        except ApiFailure as failure:
            if not (failure.not_found and session.arguments.switch("ignore-not-found")):
                await session.complain(from_server(failure))
    if output == "name":
        await session.say("".join(f"{kind.label}/{name_of(obj)}\n" for kind, obj in found))
        return
    single = len(found) == 1 and bool(targets[0][1])
    if not found and any(name for _, name in targets):
        return
    items = [_without_ownership(obj) for _, obj in found]
    printed: Obj = items[0] if single else {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}}
    await session.say(_formatted(output, printed))


def _formatted(output: str, printed: Obj) -> str:
    if output == "json":
        return json_text(printed)
    if output == "yaml":
        return yaml_text(printed)
    name, _, template = output.partition("=")
    if name == "jsonpath":
        return template_text(template, printed)
    raise KubectlError(f'error: unable to match a printer suitable for the output format "{output}"')


def _without_ownership(obj: Obj) -> Obj:
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _api(kind: Kind) -> str:
    return f"{kind.group}/{kind.version}" if kind.group else kind.version


async def _get_table(session: Session, targets: list[tuple[Kind, str]], *, wide: bool) -> None:
    arguments = session.arguments
    tables: dict[Kind, list[Obj]] = {}
    for kind, name in targets:
        try:
            if name:
                answer = await session.api.call("GET", kind.path(session.namespace, name), accept=TABLE)
            else:
                answer = await session.listed(kind, accept=TABLE)
        except ApiFailure as failure:
            if not (failure.not_found and arguments.switch("ignore-not-found")):
                await session.complain(from_server(failure))
            continue
        tables.setdefault(kind, []).append(answer)
    everywhere = arguments.switch("all-namespaces")
    headers = not arguments.switch("no-headers")
    texts = [
        table_text(
            found,
            headers=headers,
            wide=wide,
            namespaces=everywhere and kind.namespaced,
            kind=kind.label if len(tables) > 1 else "",
        )
        for kind, found in tables.items()
        if any(table.get("rows") for table in found)
    ]
    if texts:
        await session.say("\n".join(texts))
    elif not session.status:
        where = "" if everywhere else f" in {session.namespace} namespace"
        await session.process.error(f"No resources found{where if targets[0][0].namespaced else ''}.\n")


async def patch(session: Session) -> None:
    arguments = session.arguments
    text = arguments.get("patch")
    if arguments.has("patch-file"):
        text = session.process.files.read_text(arguments.get("patch-file"))
    if not text:
        raise KubectlError("error: must specify --patch or --patch-file containing the contents of the patch")
    try:
        body = load_yaml(text)
    except yaml.YAMLError as problem:
        raise KubectlError(f'error: unable to parse "{text}": yaml: {problem}') from None
    targets = await session.named(arguments.words)
    for kind, name in targets:
        if not name:
            raise KubectlError("error: name of the object to patch is required")
        form = _patch_form(arguments.get("type"), kind)
        path = kind.path(session.namespace, name, arguments.get("subresource"), **_manager())
        try:
            before = await session.api.call("GET", kind.path(session.namespace, name))
            after = await session.api.call("PATCH", path, body, content_type=form)
        except ApiFailure as failure:
            await session.complain(from_server(failure))
            continue
        same = _version(before) == _version(after)
        await session.say(f"{kind.label}/{name} patched{' (no change)' if same else ''}\n")


def _patch_form(patch_type: str, kind: Kind) -> str:
    form = patch_type or "strategic"
    if form not in _PATCHES:
        raise KubectlError(f'error: --type must be one of [json merge strategic], not "{form}"')
    # Custom resources know no strategic merge; kubectl takes the other one by itself there only when asked to.
    return _PATCHES[form]


def _version(obj: Obj) -> Any:
    return obj.get("metadata", {}).get("resourceVersion")


def _manager() -> dict[str, str]:
    return {"fieldManager": FIELD_MANAGER}


async def scale(session: Session) -> None:
    replicas = session.arguments.get("replicas")
    if not replicas.isdigit():
        raise KubectlError("error: The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0")
    async for kind, obj in session.objects(session.arguments.words, "scale"):
        path = kind.path(session.namespace, name_of(obj), "scale", **_manager())
        try:
            await session.api.call("PATCH", path, {"spec": {"replicas": int(replicas)}}, content_type=MERGE_PATCH)
        except ApiFailure as failure:
            await session.complain(from_server(failure))
            continue
        await session.say(f"{kind.label}/{name_of(obj)} scaled\n")


async def delete(session: Session) -> None:
    arguments = session.arguments
    chosen: list[tuple[Kind, Obj]] = []
    if arguments.has("filename"):
        kinds = await session.kinds()
        chosen = [(kinds.of(obj), obj) for obj in await session.manifests()]
    else:
        chosen = [pair async for pair in session.objects(arguments.words, "delete")]
    wish: Obj = {
        "propagationPolicy": {"orphan": "Orphan", "foreground": "Foreground"}.get(
            arguments.get("cascade"), "Background"
        )
    }
    if arguments.switch("now") or arguments.switch("force"):
        wish["gracePeriodSeconds"] = 0 if arguments.switch("force") else 1
    if arguments.get("grace-period").lstrip("-").isdigit() and int(arguments.get("grace-period")) >= 0:
        wish["gracePeriodSeconds"] = int(arguments.get("grace-period"))
    gone: list[ApiPath] = []
    for kind, obj in chosen:
        path = kind.path(session.home(kind, obj), name_of(obj))
        try:
            await session.api.call("DELETE", path, wish)
        except ApiFailure as failure:
            if not (failure.not_found and arguments.switch("ignore-not-found")):
                await session.complain(from_server(failure))
            continue
        how = " force deleted" if arguments.switch("force") else " deleted"
        where = f" from {path.namespace} namespace" if path.namespace else ""
        await session.say(f'{kind.label} "{name_of(obj)}"{how}{where}\n')
        gone.append(path)
    if arguments.switch("wait", default=True):
        for path in gone:
            while await session.api.find(path) is not None:
                await session.process.sleep(1.0)


async def apply(session: Session) -> None:
    """Always on the server, which merges as the client would have; the manager is called as kubectl's is."""
    kinds = await session.kinds()
    for obj in await session.manifests():
        kind = kinds.of(obj)
        manager = "kubectl" if session.arguments.switch("server-side") else "kubectl-client-side-apply"
        path = kind.path(session.home(kind, obj), name_of(obj))
        try:
            before = await session.api.find(path)
            path.query = {"fieldManager": manager, "force": "true"}
            after = await session.api.call("PATCH", path, obj, content_type=APPLY_PATCH)
        except ApiFailure as failure:
            await session.complain(from_server(failure))
            continue
        if before is None:
            did = "created"
        else:
            did = "unchanged" if _version(before) == _version(after) else "configured"
        done = "serverside-applied" if session.arguments.switch("server-side") else did
        await session.say(f"{kind.label}/{name_of(obj)} {done}\n")


async def create(session: Session) -> None:
    kinds = await session.kinds()
    for obj in await session.manifests():
        kind = kinds.of(obj)
        try:
            path = kind.path(session.home(kind, obj), **_manager())
            created_object = await session.api.call("POST", path, obj)
        except ApiFailure as failure:
            await session.complain(from_server(failure))
            continue
        await session.say(f"{kind.label}/{name_of(created_object)} created\n")


async def replace(session: Session) -> None:
    kinds = await session.kinds()
    for obj in await session.manifests():
        kind = kinds.of(obj)
        try:
            await session.api.call("PUT", kind.path(session.home(kind, obj), name_of(obj), **_manager()), obj)
        except ApiFailure as failure:
            await session.complain(from_server(failure))
            continue
        await session.say(f"{kind.label}/{name_of(obj)} replaced\n")


async def annotate(session: Session) -> None:
    await _mark(session, "annotations", annotations_of, "annotated", "annotation")


async def label(session: Session) -> None:
    await _mark(session, "labels", labels_of, "labeled", "label")


async def _mark(session: Session, field: str, present: Callable[[Obj], dict[str, str]], done: str, noun: str) -> None:
    words = session.arguments.words
    changes = [word for word in words[1:] if "=" in word or word.endswith("-")]
    names = [word for word in words if word not in changes]
    if not changes:
        raise KubectlError(f"error: at least one {noun} update is required")
    targets: dict[str, str | None] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        targets[key if equals else key.removesuffix("-")] = value if equals else None
    async for kind, obj in session.objects(names, noun):
        now = present(obj)
        taken = [key for key, value in targets.items() if value is not None and now.get(key, value) != value]
        if taken and not session.arguments.switch("overwrite"):
            key = taken[0]
            await session.complain(
                KubectlError(f"error: '{key}' already has a value ({now[key]}), and --overwrite is false")
            )
            continue
        path = kind.path(session.namespace, name_of(obj), **_manager())
        try:
            after = await session.api.call("PATCH", path, {"metadata": {field: targets}}, content_type=MERGE_PATCH)
        except ApiFailure as failure:
            await session.complain(from_server(failure))
            continue
        did = done if _version(after) != _version(obj) or noun == "annotation" else f"not {done}"
        await session.say(f"{kind.label}/{name_of(obj)} {did}\n")


async def set_(session: Session) -> None:
    """`set image`, `set resources` and `set env` on anything with a pod template."""
    words = session.arguments.words
    what = words.pop(0) if words else ""
    if what not in ("image", "resources", "env"):
        raise KubectlError(f"error: unknown command \"{what}\"\nSee 'kubectl set -h' for help and examples")
    pairs = dict(word.partition("=")[::2] for word in words if "=" in word)
    names = [word for word in words if "=" not in word]
    async for kind, obj in session.objects(names, "set"):
        containers = obj["spec"]["template"]["spec"]["containers"]
        body = {"spec": {"template": {"spec": {"containers": _changed(session, what, containers, pairs)}}}}
        path = kind.path(session.namespace, name_of(obj), fieldManager="kubectl-set")
        try:
            await session.api.call("PATCH", path, body, content_type=STRATEGIC_PATCH)
        except ApiFailure as failure:
            await session.complain(from_server(failure))
            continue
        done = {"image": "image updated", "resources": "resource requirements updated", "env": "env updated"}[what]
        await session.say(f"{kind.label}/{name_of(obj)} {done}\n")


def _changed(session: Session, what: str, containers: list[Obj], pairs: dict[str, str]) -> list[Obj]:
    if what == "image":
        images = {c["name"]: pairs.get(c["name"], pairs.get("*", "")) for c in containers}
        unknown = set(pairs) - {c["name"] for c in containers} - {"*"}
        if unknown:
            raise KubectlError(f'error: unable to find container named "{sorted(unknown)[0]}"')
        return [{"name": name, "image": image} for name, image in images.items() if image]
    only = session.arguments.get("containers") or session.arguments.get("container")
    chosen = [c["name"] for c in containers if only in ("", "*", c["name"])]
    if what == "env":
        return [{"name": name, "env": [{"name": k, "value": v} for k, v in pairs.items()]} for name in chosen]
    amounts = {
        field: dict(part.partition("=")[::2] for part in session.arguments.get(field).split(","))
        for field in ("limits", "requests")
        if session.arguments.has(field)
    }
    return [{"name": name, "resources": amounts} for name in chosen]


async def logs(session: Session) -> None:
    words = session.arguments.words
    name = words[0].rpartition("/")[2] if words else ""
    query = {key: session.arguments.get(flag) for key, flag in (("container", "container"), ("tailLines", "tail"))}
    query = {key: value for key, value in query.items() if value}
    path = ApiPath("", "v1", "pods", session.namespace, name, "log", query)
    await session.say((await session.api.text("GET", path.target, accept="text/plain, */*")).decode(errors="replace"))


async def version(session: Session) -> None:
    found = await session.api.call("GET", "/version")
    await session.say(f"Server Version: {found.get('gitVersion', '')}\n")


COMMANDS: dict[str, Command] = {
    "get": get,
    "patch": patch,
    "scale": scale,
    "delete": delete,
    "apply": apply,
    "create": create,
    "replace": replace,
    "annotate": annotate,
    "label": label,
    "set": set_,
    "rollout": rollout,
    "wait": wait,
    "logs": logs,
    "version": version,
}
