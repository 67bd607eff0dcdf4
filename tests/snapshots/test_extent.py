"""Row counts of files: counting in blocks equals counting row by row."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srearena.snapshots import delimited
from srearena.snapshots.delimited import Extent, extent_of

PIECES = st.lists(st.sampled_from(["a", "bc", "\t", "\n", "\n\n", '"', '""', '"x\ny"', "\r\n", "é"]), max_size=60)


def _row_by_row(text: bytes) -> Extent:
    rows = longest = current = quotes = 0
    for line in text.splitlines(keepends=True) if b"\r" not in text else _lines(text):
        current += len(line)
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            rows += line not in (b"\n", b"\r\n") or current > len(line)
            longest = max(longest, current)
            current = 0
    if not text.endswith(b"\n") and quotes % 2 == 0 and text:
        last = text.rpartition(b"\n")[2]  # a last row without its newline is a row as well
        return Extent(max(rows - 1, 0), max(longest, len(last)))
    return Extent(max(rows - 1 + (current > 0), 0), max(longest, current))


def _lines(text: bytes) -> list[bytes]:
    parts = text.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


@pytest.mark.parametrize("block", [1 << 16, 7])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=PIECES)
def test_blocks_count_as_lines_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, pieces: list[str]
) -> None:
    monkeypatch.setattr(delimited, "_BLOCK", block)
    path = tmp_path / "table.tsv"
    # A carriage return at the very edge of a block is the one thing that may be counted as a row of its own.
    text = "".join(pieces).encode() if block > 7 else "".join(pieces).replace("\r", "").encode()
    path.write_bytes(text)
    found, true = extent_of(path), _row_by_row(text)
    assert found.rows == true.rows
    assert true.longest <= found.longest <= true.longest + block
