"""Tab-separated files as pandas and Go write them: quoted newlines, huge fields, truncated files.

DuckDB reads well-formed files directly. A file it rejects is repaired first: read leniently in constant memory and
written again well-formed, with a report of what was wrong. No readable row is lost.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from srearena.snapshots.attributes import python_to_json

csv.field_size_limit(sys.maxsize)
_BLOCK = 1 << 16  # bytes; the allocator reuses blocks of this size, larger ones go back to the system
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True, slots=True)
class RepairedFile:
    path: Path
    rows: int
    oddities: tuple[str, ...]


def header_of(path: Path) -> list[str]:
    """The unique column names of a file; empty for an empty file."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as handle:
        first = next(csv.reader((line.replace("\0", "") for line in handle), delimiter="\t"), [])
    names: dict[str, None] = {}
    for index, name in enumerate(first):
        clean = name.strip() or f"column{index}"
        names[clean if clean not in names else f"{clean}_{index}"] = None
    return list(names)


def edges_of(path: Path, columns: Sequence[str]) -> list[str]:
    """The cells of the first and of the last row in the first of these columns; none if the file has no such rows."""
    names = [name.lower() for name in header_of(path)]
    place = next((names.index(name) for name in columns if name in names), None)
    if place is None:
        return []
    with path.open("rb") as handle:
        handle.readline(_BLOCK)
        first = handle.readline(_BLOCK)
        handle.seek(max(handle.seek(0, os.SEEK_END) - _BLOCK, 0))
        last = handle.read().splitlines()[1:] or [first]
    rows = csv.reader((line.decode(errors="replace").replace("\0", "") for line in (first, last[-1])), delimiter="\t")
    return [row[place] for row in rows if len(row) > place]


@dataclass(frozen=True, slots=True)
class Extent:
    rows: int
    longest: int  # upper bound of the bytes of a row


def extent_of(path: Path) -> Extent:
    """Number of rows of a well-formed file and the length of the longest, to size and check the DuckDB read."""
    rows = longest = 0
    begun = 0  # bytes of the current row in earlier blocks
    inside = False  # inside a quoted field
    block = bytearray(_BLOCK)  # reused: allocating a block takes longer than counting its rows
    with path.open("rb", buffering=0) as handle:
        while size := handle.readinto(block):
            data = np.frombuffer(block, dtype=np.uint8, count=size)
            if inside or block.find(b'"', 0, size) >= 0:
                ended, last, inside = _quoted_rows(data, begun, inside)
            else:
                ended, last = _plain_rows(block, data, begun)
            rows += ended
            longest = max(longest, begun + size)
            begun = begun + size if last < 0 else size - last - 1
    return Extent(max(rows - 1 + (begun > 0), 0), longest)


def _plain_rows(block: bytearray, data: np.ndarray, begun: int) -> tuple[int, int]:
    """Rows that end in a block without quotes, and the position of the last line end."""
    ends = data == _NEWLINE
    if (not begun and ends[0]) or block.find(b"\r", 0, len(data)) >= 0 or (ends[1:] & ends[:-1]).any():
        return _rows_at(data, np.flatnonzero(ends), begun)  # there may be blank lines, which are not rows
    return int(np.count_nonzero(ends)), block.rfind(b"\n", 0, len(data))


def _quoted_rows(data: np.ndarray, begun: int, inside: bool) -> tuple[int, int, bool]:
    """Like `_plain_rows` for a block with quotes; also whether the block ends inside a quoted field."""
    ends, marks = np.flatnonzero(data == _NEWLINE), np.flatnonzero(data == _QUOTE)
    quoted = (np.searchsorted(marks, ends) + inside) % 2 == 1
    return *_rows_at(data, ends[~quoted], begun), bool((len(marks) + inside) % 2)


def _rows_at(data: np.ndarray, ends: np.ndarray, begun: int) -> tuple[int, int]:
    """Number of non-blank lines ending at these positions, and the last position."""
    if not len(ends):
        return 0, -1
    lengths = np.diff(ends, prepend=-1)
    lengths[0] += begun
    blank = (lengths == 1) | ((lengths == 2) & (data[ends - 1] == _RETURN))
    return len(ends) - int(blank.sum()), int(ends[-1])


def repair(source: Path, target: Path) -> RepairedFile:
    """Copy a file that a strict reader rejects into a well-formed one."""
    width = len(header_of(source))
    oddities: list[str] = []
    rows = short = long = 0
    last_short = False
    with (
        source.open(encoding="utf-8-sig", errors="replace", newline="") as handle,
        target.open("w", encoding="utf-8", newline="") as out,
    ):
        reader = csv.reader((line.replace("\0", "") for line in handle), delimiter="\t")
        writer = csv.writer(out, delimiter="\t", lineterminator="\n")
        for index, row in enumerate(reader):
            if index and not row:
                continue
            last_short = len(row) < width
            short += last_short
            long += len(row) > width
            writer.writerow([*row[:width], *([""] * (width - len(row)))])
            rows += index > 0
    if last_short:
        short -= 1
        oddities.append(f"{source.name}: the last line is cut off; kept as far as it goes")
    if short:
        oddities.append(f"{source.name}: {short} rows with too few columns; the missing ones are empty")
    if long:
        oddities.append(f"{source.name}: {long} rows with too many columns; the surplus was dropped")
    if not oddities:
        oddities.append(f"{source.name}: not well-formed (encoding or quoting); read leniently")
    return RepairedFile(target, rows, tuple(oddities))


def bodies_to_json(source: Path, target: Path) -> int:
    """Copy a file with bodies that are the repr of a Python dict as JSON; returns how many there were."""
    names = [name.lower() for name in header_of(source)]
    place = names.index("body") if "body" in names else -1
    converted = 0
    with (
        source.open(encoding="utf-8-sig", errors="replace", newline="") as handle,
        target.open("w", encoding="utf-8", newline="") as out,
    ):
        writer = csv.writer(out, delimiter="\t", lineterminator="\n")
        for row in csv.reader((line.replace("\0", "") for line in handle), delimiter="\t"):
            if 0 <= place < len(row) and row[place].lstrip().startswith(("{'", '{"')):
                body = python_to_json(row[place])
                converted += body is not None and body != row[place]
                row[place] = body or row[place]
            writer.writerow(row)
    return converted
