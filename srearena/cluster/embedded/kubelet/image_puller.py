"""The kubelet's side of images: pull policy, credentials, events, and back-off after a failed pull."""

from __future__ import annotations

import base64
from collections.abc import Callable

import orjson

from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.durations import format_duration
from srearena.cluster.embedded.image_references import DEFAULT_REGISTRY, InvalidReference, parse_reference
from srearena.cluster.embedded.kubelet.backoff import BackOff
from srearena.cluster.embedded.kubelet.reasons import (
    ERR_IMAGE_NEVER_PULL,
    ERR_IMAGE_PULL,
    IMAGE_PULL_BACK_OFF,
    INVALID_IMAGE_NAME,
    NotStarted,
)
from srearena.cluster.embedded.kubelet.statistics import Statistics
from srearena.cluster.embedded.machine.images.catalogue import PullError
from srearena.cluster.embedded.machine.images.store import Image, ImageStore
from srearena.cluster.embedded.objects import Obj, namespace_of, uid_of

Say = Callable[[str, str, str], None]
"""(type, reason, message): an event about the container."""


class ImagePuller:
    def __init__(self, clock: Clock, client: Client, images: ImageStore, statistics: Statistics) -> None:
        self._clock = clock
        self._statistics = statistics
        self._client = client
        self._images = images
        self._back_off = BackOff(clock)
        self._last_errors: dict[tuple[str, str], str] = {}

    async def ensure(self, pod: Obj, container: Obj, say: Say) -> Image:
        """The container's image, pulled if needed; NotStarted where the pull fails."""
        name = container["image"]
        try:
            reference = parse_reference(name)
        except InvalidReference as error:
            message = f'Failed to apply default image tag "{name}": couldn\'t parse image name "{name}": {error}'
            say("Warning", "InspectFailed", message)
            raise NotStarted(INVALID_IMAGE_NAME, message) from None
        policy = container.get("imagePullPolicy") or "IfNotPresent"
        present = self._images.get(reference)
        if present is not None and policy != "Always":
            say("Normal", "Pulled", f'Container image "{name}" already present on machine')
            return present
        if policy == "Never":
            message = f'Container image "{name}" is not present with pull policy of Never'
            say("Warning", ERR_IMAGE_NEVER_PULL, message)
            raise NotStarted(ERR_IMAGE_NEVER_PULL, message)
        key = (uid_of(pod), name)
        if self._back_off.waits(key):
            message = f'Back-off pulling image "{name}"'
            say("Normal", "BackOff", message)
            earlier = self._last_errors.get(key)
            raise NotStarted(IMAGE_PULL_BACK_OFF, f"{message}: {earlier}" if earlier else message)
        say("Normal", "Pulling", f'Pulling image "{name}"')
        began = self._clock.now
        try:
            pulled = await self._images.pull(reference, self._credentials(pod))
        except PullError as error:
            self._statistics.ran("pull_image", self._clock.now - began, failed=True)
            say("Warning", "Failed", f'Failed to pull image "{name}": {error}')
            self._back_off.next(key, self._clock.now)
            self._last_errors[key] = f"{ERR_IMAGE_PULL}: {error}"
            raise NotStarted(ERR_IMAGE_PULL, str(error)) from None
        self._statistics.ran("pull_image", self._clock.now - began)
        took, in_all = _milliseconds(pulled.seconds), _milliseconds(pulled.seconds_in_all)
        say(
            "Normal",
            "Pulled",
            f'Successfully pulled image "{name}" in {took} ({in_all} including waiting). '
            f"Image size: {pulled.image.size} bytes.",
        )
        return pulled.image

    def forget(self, pod: Obj) -> None:
        for key in [key for key in self._last_errors if key[0] == uid_of(pod)]:
            del self._last_errors[key]
            self._back_off.forget(key)

    def missing_secrets(self, pod: Obj) -> list[str]:
        """Pull secrets the pod names that do not exist."""
        names = [reference.get("name", "") for reference in pod["spec"].get("imagePullSecrets") or ()]
        return [name for name in names if self._client.get("secrets", namespace_of(pod), name) is None]

    def _credentials(self, pod: Obj) -> frozenset[str]:
        """The registries that the pod's pull secrets have a password for."""
        hosts: set[str] = set()
        for reference in pod["spec"].get("imagePullSecrets") or ():
            secret = self._client.get("secrets", namespace_of(pod), reference.get("name", ""))
            text = ((secret or {}).get("data") or {}).get(".dockerconfigjson")
            if text:
                hosts.update(_hosts(text))
        return frozenset(hosts)


def _hosts(encoded: str) -> set[str]:
    try:
        auths = orjson.loads(base64.b64decode(encoded)).get("auths", {})
    except (ValueError, AttributeError):
        return set()
    hosts = {host.removeprefix("https://").removeprefix("http://").partition("/")[0] for host in auths}
    return {DEFAULT_REGISTRY if host == "index.docker.io" else host for host in hosts}


def _milliseconds(seconds: float) -> str:
    return format_duration(int(seconds * 1000) / 1000)
