"""Tab-separated files as pandas and Go write them: quoted newlines, huge fields, files cut off in the middle.

DuckDB reads a well-formed file by itself, fast and strictly. One it refuses is mended first: read leniently in
constant memory, written again well-formed, and what was wrong is told. No row that can be read is lost.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

csv.field_size_limit(sys.maxsize)
_BLOCK = 1 << 16  # memory this small is used again; larger pieces go back to the system, and new ones cost time
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True, slots=True)
class Mended:
    path: Path
    rows: int
    oddities: tuple[str, ...]


def header_of(path: Path) -> list[str]:
    """The names of a file's columns, made unique; empty for an empty file."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as handle:
        first = next(csv.reader((line.replace("\0", "") for line in handle), delimiter="\t"), [])
    names: list[str] = []
    for index, name in enumerate(first):
        clean = name.strip() or f"column{index}"
        names.append(clean if clean not in names else f"{clean}_{index}")
    return names


@dataclass(frozen=True, slots=True)
class Extent:
    rows: int
    longest: int  # no row has more bytes than this


def extent_of(path: Path) -> Extent:
    """How many rows a well-formed file has, and how long they get: what a reader is prepared for and checked by."""
    rows = longest = 0
    begun = 0  # bytes of the row that the blocks so far have begun
    inside = False  # of a quoted field
    block = bytearray(_BLOCK)  # filled again and again: memory that is new for each block takes longer than counting
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
    """How many rows end in a block without quotes, and where the last line does."""
    ends = data == _NEWLINE
    if (not begun and ends[0]) or block.find(b"\r", 0, len(data)) >= 0 or (ends[1:] & ends[:-1]).any():
        return _rows_at(data, np.flatnonzero(ends), begun)  # there may be blank lines
    return int(np.count_nonzero(ends)), block.rfind(b"\n", 0, len(data))


def _quoted_rows(data: np.ndarray, begun: int, inside: bool) -> tuple[int, int, bool]:
    """The same of a block with quotes, or one that is inside of them, and whether it ends there."""
    ends, marks = np.flatnonzero(data == _NEWLINE), np.flatnonzero(data == _QUOTE)
    quoted = (np.searchsorted(marks, ends) + inside) % 2 == 1
    return *_rows_at(data, ends[~quoted], begun), bool((len(marks) + inside) % 2)


def _rows_at(data: np.ndarray, ends: np.ndarray, begun: int) -> tuple[int, int]:
    """Lines that end there without the blank ones, and where the last does."""
    if not len(ends):
        return 0, -1
    lengths = np.diff(ends, prepend=-1)
    lengths[0] += begun
    blank = (lengths == 1) | ((lengths == 2) & (data[ends - 1] == _RETURN))
    return len(ends) - int(blank.sum()), int(ends[-1])


def mend(source: Path, target: Path) -> Mended:
    """Copy a file that a strict reader refuses into one it takes."""
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
    return Mended(target, rows, tuple(oddities))
