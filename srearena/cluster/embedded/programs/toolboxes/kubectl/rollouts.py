"""`kubectl rollout restart|status` and `kubectl wait`: making something happen, and waiting until it has."""

from __future__ import annotations

from srearena.cluster.embedded.durations import format_time, parse_duration
from srearena.cluster.embedded.objects import Obj, condition_is, dig, name_of
from srearena.cluster.embedded.programs.toolboxes.cluster_api import STRATEGIC_PATCH, ApiFailure
from srearena.cluster.embedded.programs.toolboxes.kubectl.errors import KubectlError, from_server
from srearena.cluster.embedded.programs.toolboxes.kubectl.printing import template_text
from srearena.cluster.embedded.programs.toolboxes.kubectl.session import Session

_LOOK_SECONDS = 1.0


async def rollout(session: Session) -> None:
    words = session.arguments.words
    what = words.pop(0) if words else ""
    match what:
        case "restart":
            await restart(session, words)
        case "status":
            await status(session, words)
        case _:
            raise KubectlError(f"error: unknown command \"{what}\"\nSee 'kubectl rollout -h' for help and examples")


async def restart(session: Session, words: list[str]) -> None:
    stamp = {"kubectl.kubernetes.io/restartedAt": format_time(session.process.clock.now)}
    body = {"spec": {"template": {"metadata": {"annotations": stamp}}}}
    async for kind, obj in session.objects(words, "restart"):
        path = kind.path(session.namespace, name_of(obj), fieldManager="kubectl-rollout")
        try:
            await session.api.call("PATCH", path, body, content_type=STRATEGIC_PATCH)
        except ApiFailure as failure:
            await session.complain(from_server(failure))
            continue
        await session.say(f"{kind.label}/{name_of(obj)} restarted\n")


async def status(session: Session, words: list[str]) -> None:
    deadline = _deadline(session, 0.0)
    async for kind, obj in session.objects(words, "watch"):
        name = name_of(obj)
        while (missing := _unfinished(obj)) is not None:
            await session.say(f'Waiting for {kind.singular} "{name}" rollout to finish: {missing}...\n')
            if session.process.clock.now >= deadline:
                raise KubectlError("error: timed out waiting for the condition")
            await session.process.sleep(_LOOK_SECONDS)
            obj = await session.api.call("GET", kind.path(session.namespace, name))
        await session.say(f'{kind.singular} "{name}" successfully rolled out\n')


def _unfinished(obj: Obj) -> str | None:
    wanted = dig(obj, "spec", "replicas", default=1)
    now = obj.get("status") or {}
    updated, available = now.get("updatedReplicas", 0), now.get("availableReplicas", 0)
    if now.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        return "spec update to be observed"
    if updated < wanted:
        return f"{updated} out of {wanted} new replicas have been updated"
    if available < updated:
        return f"{available} of {updated} updated replicas are available"
    return None


async def wait(session: Session) -> None:
    """`--for=condition=X[=V]`, `--for=delete`, `--for=jsonpath={...}=V`."""
    wish = session.arguments.get("for")
    deadline = _deadline(session, 30.0)
    chosen = [pair async for pair in session.objects(session.arguments.words, "wait")]
    for kind, obj in chosen:
        path = kind.path(session.namespace, name_of(obj))
        found: Obj | None = obj
        while not _fulfilled(wish, found):
            if session.process.clock.now >= deadline:
                raise KubectlError(f"error: timed out waiting for the condition on {kind.plural}/{name_of(obj)}")
            await session.process.sleep(_LOOK_SECONDS)
            found = await session.api.find(path)
        await session.say(f"{kind.label}/{name_of(obj)} condition met\n")


def _fulfilled(wish: str, obj: Obj | None) -> bool:
    if wish == "delete":
        return obj is None
    if obj is None:
        raise KubectlError("Error from server (NotFound): the object is gone")
    form, _, rest = wish.partition("=")
    if form == "condition":
        name, equals, value = rest.partition("=")
        return condition_is(obj, name, value.capitalize() if equals else "True")
    if form == "jsonpath":
        template, _, value = rest.rpartition("=")
        return template_text(template, obj) == value
    raise KubectlError(f'error: unrecognized condition: "{wish}"')


def _deadline(session: Session, default: float) -> float:
    text = session.arguments.get("timeout")
    try:
        seconds = parse_duration(text) if text else default
    except ValueError:
        raise KubectlError(f'error: invalid argument "{text}" for "--timeout" flag') from None
    return session.process.clock.now + seconds if seconds else float("inf")
