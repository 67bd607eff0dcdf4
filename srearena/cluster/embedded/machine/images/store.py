"""The images on a machine's disk, and image pulls.

Pulls queue up: containerd is asked for one image at a time (the kubelet's `serializeImagePulls`), so a large image
delays the ones behind it. For an image that is present only the registry is queried.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from random import Random

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.image_references import Reference, parse_reference
from srearena.cluster.embedded.machine.files.inodes import Space
from srearena.cluster.embedded.machine.images.catalogue import Catalogue, PullError
from srearena.cluster.embedded.objects import Obj

RESOLVE_SECONDS = 0.3
"""The time to resolve a tag at the registry."""
BYTES_PER_SECOND = 50_000_000
"""The rate of downloading and unpacking together."""
UNPACKED = 2.6
"""Bytes on disk per byte downloaded."""
REFUSAL_SECONDS = 0.9
MAX_LISTED = 50
"""How many images a node's status lists."""


@dataclass(slots=True)
class Image:
    reference: Reference
    size: int
    digest: str
    used_at: float

    @property
    def on_disk(self) -> int:
        return int(self.size * UNPACKED)


@dataclass(frozen=True, slots=True)
class Pulled:
    image: Image
    seconds: float
    """The duration of the pull itself."""
    seconds_in_all: float
    """Including the time in the queue."""


class ImageStore:
    def __init__(self, clock: Clock, random: Random, catalogue: Catalogue, disk: Space) -> None:
        self.catalogue = catalogue
        self.bytes_per_second = float(BYTES_PER_SECOND)
        self.generation = 0
        """Counts changes of the stored images, so that the node's status is updated when needed."""
        self._clock = clock
        self._random = random
        self._disk = disk
        self._images: dict[str, Image] = {}
        self._free_at = clock.now
        self._coming: set[str] = set()
        """Images that are being pulled by an earlier request in the queue."""

    def get(self, reference: Reference) -> Image | None:
        return self._images.get(str(reference))

    def images(self) -> list[Image]:
        return list(self._images.values())

    def preload(self, *names: str) -> None:
        """Add the images that a machine comes with."""
        for name in names:
            reference = parse_reference(name)
            if str(reference) not in self._images:
                self._keep(reference, self.catalogue.find(reference).size_of(reference))

    async def pull(self, reference: Reference, credentials: frozenset[str]) -> Pulled:
        """Pull an image, after the earlier requests in the queue; PullError with containerd's message."""
        asked_at = self._clock.now
        begin = max(asked_at, self._free_at)
        present = str(reference) in self._images or str(reference) in self._coming
        try:
            repository = self.catalogue.find(reference, credentials)
        except PullError:
            self._free_at = begin + REFUSAL_SECONDS * self._random.uniform(0.7, 1.3)
            await self._until(self._free_at)
            raise
        seconds = RESOLVE_SECONDS + (0 if present else repository.size / self.bytes_per_second)
        seconds *= self._random.uniform(0.85, 1.15)
        self._free_at = begin + seconds
        self._coming.add(str(reference))
        try:
            await self._until(self._free_at)
        finally:
            self._coming.discard(str(reference))
        image = self._images.get(str(reference)) or self._keep(reference, repository.size_of(reference))
        return Pulled(image, seconds, self._clock.now - asked_at)

    def _until(self, moment: float) -> Awaitable[None]:
        return self._clock.sleep(moment - self._clock.now)

    def _keep(self, reference: Reference, size: int) -> Image:
        image = Image(reference, size, reference.content_digest, self._clock.now)
        try:
            self._disk.take(image.on_disk)
        except OSError as error:
            raise PullError(
                f'rpc error: code = Unknown desc = failed to pull and unpack image "{reference}": failed to extract '
                f"layer {image.digest}: write /var/lib/containerd/io.containerd.content.v1.content/ingest: "
                f"{str(error.strerror).lower()}"
            ) from None
        self._images[str(reference)] = image
        self.generation += 1
        return image

    def remove(self, image: Image) -> None:
        """Delete an image; its space is free again."""
        if self._images.pop(str(image.reference), None) is not None:
            self._disk.take(-image.on_disk)
            self.generation += 1

    def listed(self) -> list[Obj]:
        """For `status.images`: the largest images with all their names."""
        largest = sorted(self._images.values(), key=lambda image: (-image.size, str(image.reference)))[:MAX_LISTED]
        rows: list[Obj] = []
        for image in largest:
            names = [f"{image.reference.repository}@{image.digest}"]
            if image.reference.tag:
                names.append(f"{image.reference.repository}:{image.reference.tag}")
            rows.append({"names": names, "sizeBytes": image.size})
        return rows
