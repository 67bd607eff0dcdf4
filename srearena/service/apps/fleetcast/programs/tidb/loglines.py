"""The two log formats: klog's of the operator, and the unified one of PD, TiKV and TiDB."""

from __future__ import annotations

from srearena.cluster.program_models import Process, klog_line, stamp

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:")


async def klog(process: Process, level: str, where: str, text: str) -> None:
    await process.error(klog_line(process, level, where, text))


async def unified(process: Process, level: str, where: str, text: str, **fields: object) -> None:
    """`[2026/08/01 10:00:00.123 +00:00] [INFO] [file.go:12] ["a text"] [name=value]`."""
    when = stamp(process, "%Y/%m/%d %H:%M:%S.%L +00:00")
    tail = "".join(f" [{name.replace('_', '-')}={_quoted(str(value))}]" for name, value in fields.items())
    await process.write(f"[{when}] [{level}] [{where}] [{_quoted(text)}]{tail}\n")


def _quoted(text: str) -> str:
    if text and all(char in _PLAIN for char in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
