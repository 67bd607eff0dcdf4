"""date, and dates as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.options import parse
from srearena.cluster.embedded.userland.tools.registry import tool

_UNITS = {"sec": 1, "second": 1, "min": 60, "minute": 60, "hour": 3600, "day": 86400, "week": 604800, "month": 2592000}
_RELATIVE = re.compile(r"([-+]?\d{1,9})\s*(sec|second|min|minute|hour|day|week|month)s?(\s+ago)?\Z")
_FORMATS = (
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S%z",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
    "%Y%m%d",
    "%H:%M:%S",
    "%H:%M",
    "%a, %d %b %Y %H:%M:%S GMT",
    "%b %d %Y",
)
_NAMED = {"now": 0, "today": 0, "yesterday": -86400, "tomorrow": 86400}


def parse_date(text: str, now: float) -> float | None:
    """Seconds since the epoch of `@123`, `2025-01-01 10:00`, `yesterday`, `2 hours ago`; None if it is no date."""
    text = text.strip()
    if text.startswith("@"):
        found = re.fullmatch(r"@(-?\d{1,12}(?:\.\d+)?)", text)
        return float(found.group(1)) if found else None
    if text.lower() in _NAMED:
        return now + _NAMED[text.lower()]
    relative = _RELATIVE.match(text.lower())
    if relative is not None:
        return now + int(relative.group(1)) * _UNITS[relative.group(2)] * (-1 if relative.group(3) else 1)
    normal = re.sub(r"Z$", "+0000", re.sub(r"\.\d+", "", text))
    normal = re.sub(r"\s+(?:UTC|GMT)$", "+0000", normal) if not normal.endswith("GMT") or "," not in normal else normal
    for shape in _FORMATS:
        try:
            parsed = datetime.strptime(normal, shape)  # noqa: DTZ007
        except ValueError:
            continue
        if shape.startswith("%H"):
            today = datetime.fromtimestamp(now, UTC)
            parsed = parsed.replace(year=today.year, month=today.month, day=today.day)
        return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)).timestamp()
    return None


def formatted(moment: float, template: str) -> str:
    """strftime with the extras of GNU date; always UTC, as containers are."""
    date = datetime.fromtimestamp(0, UTC) + timedelta(seconds=moment)
    special = {
        "s": str(int(moment)),
        "N": f"{int(moment % 1 * 1e9):09d}",
        "3N": f"{int(moment % 1 * 1e3):03d}",
        "6N": f"{int(moment % 1 * 1e6):06d}",
        "Z": "UTC",
        "z": "+0000",
        ":z": "+00:00",
        "F": date.strftime("%Y-%m-%d"),
        "T": date.strftime("%H:%M:%S"),
        "R": date.strftime("%H:%M"),
        "D": date.strftime("%m/%d/%y"),
        "r": date.strftime("%I:%M:%S %p"),
        "c": date.strftime("%a %b %e %H:%M:%S %Y"),
        "n": "\n",
        "t": "\t",
        "%": "%",
        "P": date.strftime("%p").lower(),
        "-d": str(date.day),
        "-m": str(date.month),
        "-H": str(date.hour),
    }

    def replace(found: re.Match[str]) -> str:
        key = found.group(1)
        if key in special:
            return special[key]
        return date.strftime(f"%{key}") if key in "aAbBCdeghHIjklmMpSuUVwWyY" else found.group(0)

    return re.sub(r"%(3N|6N|:z|-[dmH]|.)", replace, template)


_LONG = {
    "date=": "d",
    "utc": "u",
    "universal": "u",
    "rfc-email": "R",
    "iso-8601?=": "I",
    "rfc-3339=": "rfc3339",
    "reference=": "r",
    "set=": "s",
}


@tool("date")
async def date(process: Process, args: list[str]) -> int:
    iso = next((arg[2:] or "date" for arg in args if arg.startswith("-I")), "")
    options = parse([arg for arg in args if not arg.startswith("-I")], "uR", "dDrs", long=_LONG)
    moment = process.date
    if "s" in options:
        await process.error("date: cannot set date: Operation not permitted\n")
        return 1
    if "d" in options:
        parsed = parse_date(options.value("d"), moment)
        if parsed is None:
            await process.error(f"date: invalid date '{options.value('d')}'\n")
            return 1
        moment = parsed
    elif "r" in options:
        try:
            moment = process.files.stat(options.value("r")).node.mtime
        except OSError as error:
            await process.error(f"date: {options.value('r')}: {error.strerror}\n")
            return 1
    template = "%a %b %e %H:%M:%S %Z %Y"
    if options.operands:
        if not options.operands[0].startswith("+"):
            await process.error(f"date: invalid date '{options.operands[0]}'\n")
            return 1
        template = options.operands[0][1:]
    elif "R" in options:
        template = "%a, %d %b %Y %H:%M:%S +0000"
    elif iso or "I" in options:
        kind = iso or options.value("I", "date")
        template = {"date": "%F", "hours": "%FT%H+00:00", "minutes": "%FT%R+00:00"}.get(kind, "%FT%T+00:00")
        if kind == "ns":
            template = "%FT%T,%N+00:00"
    elif "rfc3339" in options:
        template = "%F" if options.value("rfc3339") == "date" else "%F %T+00:00"
    try:
        text = formatted(moment, template)
    except (OverflowError, ValueError):
        await process.error(f"date: time {int(moment)} is out of range\n")
        return 1
    await process.write(f"{text}\n")
    return 0
