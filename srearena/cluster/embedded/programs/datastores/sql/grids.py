"""Results as the terminal clients print them: psql's tables, and mysql's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def cell_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if not value.is_integer() else str(int(value))
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _centred(text: str, width: int) -> str:
    """With the odd blank on the right, as psql has it."""
    left = (width - len(text)) // 2
    return " " * left + text + " " * (width - len(text) - left)


def _numeric(rows: Sequence[Sequence[Any]], index: int) -> bool:
    values = [row[index] for row in rows if row[index] is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def aligned(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, tuples: bool = False, title: str = "") -> str:
    """psql's default: centred titles, numbers to the right, the count below."""
    cells = [[cell_text(value) for value in row] for row in rows]
    widths = [
        max([len(name), *(len(line) for row in cells for line in row[i].split("\n"))]) for i, name in enumerate(columns)
    ]
    numeric = [_numeric(rows, index) for index in range(len(columns))]
    lines: list[str] = []
    if not tuples:
        if title:
            width = sum(widths) + 3 * len(widths) - 1
            lines.append(" " * ((width - len(title)) // 2) + title if len(title) < width else title)
        lines.append("|".join(f" {_centred(name, width)} " for name, width in zip(columns, widths, strict=True)))
        lines.append("+".join("-" * (width + 2) for width in widths))
    for row in cells:
        parts = [
            f" {cell.rjust(width) if right else cell.ljust(width)} "
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        if not numeric[-1]:
            parts[-1] = f" {row[-1]} "
        lines.append("|".join(parts)[:-1])
    if not tuples:
        lines.append(f"({len(rows)} row{'' if len(rows) == 1 else 's'})")
    return "".join(f"{line}\n" for line in lines) + "\n"


def unaligned(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, tuples: bool, separator: str = "|") -> str:
    lines = [] if tuples else [separator.join(columns)]
    lines += [separator.join(cell_text(value) for value in row) for row in rows]
    if not tuples:
        lines.append(f"({len(rows)} row{'' if len(rows) == 1 else 's'})")
    return "".join(f"{line}\n" for line in lines)


def expanded(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """psql -x: a record per block."""
    if not rows:
        return "(0 rows)\n\n"
    left = max(len(name) for name in columns)
    right = max([len(cell_text(value)) for row in rows for value in row] or [0])
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        head = f"-[ RECORD {number} ]"
        rule = "-" * (left + 1) + "+" + "-" * (right + 1)
        lines.append(head + rule[len(head) :])
        lines += [f"{name.ljust(left)} | {cell_text(value)}".rstrip() for name, value in zip(columns, row, strict=True)]
    return "".join(f"{line}\n" for line in lines) + "\n"


def boxed(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """mysql on a terminal, or with -t."""
    cells = [["NULL" if value is None else cell_text(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[index]) for row in cells)]) for index, name in enumerate(columns)]
    numeric = [_numeric(rows, index) for index in range(len(columns))]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        rule,
        "|" + "|".join(f" {name.ljust(width)} " for name, width in zip(columns, widths, strict=True)) + "|",
        rule,
    ]
    for row in cells:
        parts = [
            f" {cell.rjust(width) if right else cell.ljust(width)} "
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("|" + "|".join(parts) + "|")
    lines.append(rule)
    return "".join(f"{line}\n" for line in lines)


def tabbed(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, names: bool) -> str:
    """mysql in a pipe: tabs, and titles unless -N."""
    lines = ["\t".join(columns)] if names else []
    lines += ["\t".join("NULL" if value is None else cell_text(value) for value in row) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def vertical(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """mysql's \\G."""
    width = max((len(name) for name in columns), default=0)
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        lines.append(f"{'*' * 27} {number}. row {'*' * 27}")
        for name, value in zip(columns, row, strict=True):
            lines.append(f"{name.rjust(width)}: {'NULL' if value is None else cell_text(value)}")
    return "".join(f"{line}\n" for line in lines)
