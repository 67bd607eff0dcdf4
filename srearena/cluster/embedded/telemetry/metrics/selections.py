"""Series of a selector, by the block that wrote them last.

Queries repeat, and the series of a store change rarely: a selection is made once and kept until they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Block, Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.labels import Labels

Places = list[tuple[Block, int]]
"""The blocks that wrote a series, oldest first, and its column in each."""


@dataclass(slots=True)
class Group:
    """Series that one block wrote last."""

    block: Block
    is_alone: bool
    """Whether no other block wrote any of them."""
    is_sequel: bool
    """Whether all other blocks ended before this one began."""
    places: list[Places] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    """Their positions in the selection."""
    order: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The same as an array."""
    columns: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def covers(self, start: int) -> bool:
        """Return whether the block has all samples since a time."""
        if self.is_alone:
            return True
        first = self.block.first
        return self.is_sequel and first is not None and first <= start


@dataclass(slots=True)
class Selection:
    """Series in label order."""

    labels: list[Labels]
    groups: list[Group]


def selection(labels: list[Labels], places: Sequence[Places]) -> Selection:
    groups: dict[tuple[Block, bool, bool], Group] = {}
    for position, written in enumerate(places):
        if not written:
            continue
        alone = len(written) == 1
        block = written[-1][0]
        key = (block, alone, alone or _is_sequel(written))
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(*key)
        group.places.append(written)
        group.positions.append(position)
    for group in groups.values():
        group.order = np.array(group.positions, dtype=np.int64)
        group.columns = np.array([written[-1][1] for written in group.places], dtype=np.int64)
    return Selection(labels, list(groups.values()))


def _is_sequel(places: Places) -> bool:
    begin = places[-1][0].first
    if begin is None:
        return False
    return all(block.ended and (block.last is None or block.last <= begin) for block, _ in places[:-1])


@dataclass(slots=True)
class Piece:
    """Samples of some series of a selection, at shared times."""

    positions: Integers
    times: Integers
    values: Floats


def merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Put series with the same timestamps together: targets are scraped at the same times for long."""
    by_times: dict[bytes, list[Piece]] = {}
    for piece in pieces:
        if len(piece.times):
            by_times.setdefault(piece.times.tobytes(), []).append(piece)
    found = []
    for alike in by_times.values():
        if len(alike) == 1:
            found.append(alike[0])
            continue
        positions = np.concatenate([piece.positions for piece in alike])
        order = np.argsort(positions)
        values = np.concatenate([piece.values for piece in alike])[order]
        found.append(Piece(positions[order], alike[0].times, values))
    return found
