"""Takes out of a transcript what may differ between two clusters, and nothing else.

Names that a cluster draws, addresses, identities, revisions, moments and ages become placeholders. What has no
promised order is sorted. Counts, reasons, messages, conditions and exit codes stay as they are.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

_DRAWN = "[bcdfghjklmnpqrstvwxz2456789]"
"""The letters Kubernetes makes up names from."""

_REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
        (r"\bcontainerd://[0-9a-f]{64}\b", "containerd://<digest>"),
        (r"\bstart exec \"[0-9a-f]{64}\"", 'start exec "<digest>"'),
        # An image made by hand has no digest in a repository.
        (r"(?:[\w./-]+@)?sha256:[0-9a-f]{64}\b", "sha256:<digest>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "<time>"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} UTC", "<time>"),
        (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}( UTC)?", "<time>"),
        (r"\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}", "<time>"),
        (r"\b([IWE])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (?=\w+\.go:\d+\])", r"\1<time> "),
        (r"\bX509SHA256=[0-9a-f]{64}\b", "X509SHA256=<digest>"),
        # A provisioner's name has its pod's name and an identity of its own in it.
        (r"(rancher\.io/local-path)_\S+", r"\1"),
        (r"/(LIVE|MERGED)-\d+/", r"/\1/"),
        (r"\b(tick|cron)-\d{8}\b", r"\1-<minute>"),
        (rf"-{_DRAWN}{{8,10}}-{_DRAWN}{{5}}\b", "-<hash>-<id>"),
        (rf"-(?={_DRAWN}*\d){_DRAWN}{{8,10}}\b", "-<hash>"),
        (rf"(pod-template-hash[=:] ?\"?){_DRAWN}{{8,10}}\b", r"\1<hash>"),
        (r"(controller-revision-hash[=:] ?\"?[\w-]*?)[0-9a-z]{8,10}\b", r"\1<hash>"),
        (rf"-{_DRAWN}{{5}}(?=\b|_)", "-<id>"),
        (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b(?!/)", "<ip>"),
        (r"\b10\.244\.\d+\.0/24\b", "10.244.<n>.0/24"),
        (r"\bv1\.34\.\d+\b", "v1.34.<n>"),
        (r"\bworker-\d\b", "worker-<n>"),
        (r"(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", "<certificate>"),
        (r"(Resource Version: +)\d+", r"\1<revision>"),
        (r"(Too large resource version: \d+, current: )\d+", r"\1<revision>"),
        (r"(ResourceVersion in record \(|resource version to be \d+, was )\d+", r"\1<revision>"),
        (r"^(?:\d+[smhd])+(?= \(x\d+ over | {2,}(?:Normal|Warning) )", "<age>"),
        (r"\(combined from similar events\): ", ""),
        (r"\([\dhmsd]+ ago\)", "(<age> ago)"),
        (r"\(x\d+ over [^)]+\)", "(x<n> over <age>)"),
    )
)
_HEADER = re.compile(r"^(\s*)[A-Z][A-Z0-9()/%_-]*( {1,}[A-Z][A-Z0-9()/%_-]*)* *$")
_EVENTS_HEADER = re.compile(r"^\s+Type\s+Reason\s+Age\s+From\s+Message$")
# kubectl goes through the data of a Secret in whatever order it comes.
_DATUM = re.compile(r"^[-.\w]+: +\d+ bytes$")
_AGES = ("AGE", "LAST SEEN", "DURATION", "LAST SCHEDULE", "FIRST SEEN", "UPDATED")
# How often a command that waits looks up is a matter of speed; what it says in the end is not.
_PROGRESS = re.compile(r"^Waiting for (deployment|daemon set|statefulset|partitioned|\d+ pods)\b")
# A kubelet that has just begun to watch a pod's objects may mount too early and try again a moment later.
_RACE = re.compile(r"failed to sync (configmap|secret) cache: timed out waiting for the condition")
_DROPPED = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink")


def normal_text(text: str) -> str:
    """What a command printed, normalised; JSON and YAML by structure, everything else by line."""
    stripped = text.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        try:
            return _documents(stripped)
        except json.JSONDecodeError:
            pass
    if stripped.startswith("apiVersion:"):
        return _structured(yaml.safe_load(stripped))
    return _lines(text)


def _documents(text: str) -> str:
    """One JSON document, or a stream of them as a watch sends it."""
    documents = []
    while text:
        document, end = json.JSONDecoder().raw_decode(text)
        documents.append(_structured(document))
        text = text[end:].lstrip()
    return "---\n".join(documents)


def normal_events(items: list[dict[str, Any]]) -> str:
    """Events as lines of type, reason, object and message; each kind once."""
    lines = {replaced(_event_line(item)) for item in items if not _RACE.search(item.get("message", ""))}
    return "".join(f"{line}\n" for line in sorted(lines))


def _event_line(event: dict[str, Any]) -> str:
    about = event["involvedObject"]
    whose = f"{about['kind']}/{about.get('name', '')}"
    return f"{event['type']} {event['reason']} {whose}: {event.get('message', '').strip()}"


def replaced(text: str) -> str:
    """The text with placeholders for everything a cluster draws or measures."""
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text


def _structured(value: Any) -> str:
    return yaml.safe_dump(_plain(value), width=10_000)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {replaced(key): _plain(item) for key, item in value.items() if key not in _DROPPED}
        # Where a list goes on is the server's own affair; whether it does is not.
        return {**kept, "continue": "<token>"} if kept.get("continue") else kept
    if isinstance(value, list):
        items = [_plain(item) for item in value]
        return sorted(items, key=json.dumps) if items and _named(items) else items
    if isinstance(value, str):
        return replaced(value)
    return value if isinstance(value, int | float | bool) or value is None else replaced(str(value))


def _named(items: list[Any]) -> bool:
    """Objects of a list and conditions have no promised order once their names are drawn."""
    return all(isinstance(item, dict) and ("metadata" in item or "lastTransitionTime" in item) for item in items)


def _lines(text: str) -> str:
    done: list[str] = []
    rows: list[str] = []
    header: list[tuple[str, int]] = []

    def end_table() -> None:
        done.extend(sorted(rows))
        rows.clear()
        header.clear()

    for line in text.splitlines():
        if _PROGRESS.match(line) or _RACE.search(line):
            continue
        if (_HEADER.match(line) and "  " in line.strip()) or _EVENTS_HEADER.match(line):
            end_table()
            header = _columns(line)
            done.append(" | ".join(name for name, _ in header))
        elif header and line.strip() and not set(line) <= {" ", "-"}:
            rows.append(_row(line, header))
        elif header and line.strip():
            continue
        elif _DATUM.match(line):
            rows.append(re.sub(" {2,}", "  ", line))
        elif line.strip() or header or (done and done[-1]):
            end_table()
            # How wide a cell of helm's tables is depends on how many digits its moments happen to have.
            done.append(re.sub(r" +\t", "\t", re.sub(r" {2,}", "  ", replaced(_without_age(line)))).rstrip())
    end_table()
    return "".join(f"{line}\n" for line in done).strip("\n") + ("\n" if done else "")


def _columns(line: str) -> list[tuple[str, int]]:
    return [(match.group(), match.start()) for match in re.finditer(r"\S+( \S+)*", line)]


def _row(line: str, header: list[tuple[str, int]]) -> str:
    cells = []
    starts = [0, *(start for _, start in header[1:])]
    for (name, _), start, end in zip(header, starts, [*starts[1:], None], strict=True):
        cell = line[start:end].strip()
        cells.append("<age>" if name in _AGES or name == "Age" else replaced(cell))
    return " | ".join(cells)


def _without_age(line: str) -> str:
    return re.sub(r"^(\s*(Duration|Age):\s+)\S+$", r"\1<age>", line)
