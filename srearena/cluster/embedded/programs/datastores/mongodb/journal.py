"""The log of mongod: one JSON object a line, since 4.4."""

from __future__ import annotations

import json

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.log_lines import write_now
from srearena.cluster.embedded.programs.timestamps import stamp


class Journal:
    def __init__(self, process: Process) -> None:
        self.process = process

    def line(
        self,
        number: int,
        component: str,
        text: str,
        context: str = "initandlisten",
        *,
        severity: str = "I",
        **facts: object,
    ) -> None:
        record: dict[str, object] = {
            "t": {"$date": stamp(self.process, "%Y-%m-%dT%H:%M:%S.%L+00:00")},
            "s": severity,
            "c": component,
            "id": number,
            "ctx": context,
            "msg": text,
        }
        if facts:
            record["attr"] = facts
        write_now(self.process, json.dumps(record, separators=(",", ":")) + "\n")
