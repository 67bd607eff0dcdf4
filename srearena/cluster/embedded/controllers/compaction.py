"""Compaction of the key-value store: every five minutes what is older than five minutes is forgotten.

The API server of a real cluster has etcd do so. A list that was begun before, page by page, then cannot be continued as
it was; watches have a history of their own.
"""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller

INTERVAL = 300.0
"""The default of --etcd-compaction-interval."""


class Compaction(Controller):
    name = "compaction"

    def start(self) -> None:
        self.clock.after(INTERVAL, self._compact, self.store.revision)

    def _compact(self, revision: int) -> None:
        self.store.compacted = revision
        self.clock.after(INTERVAL, self._compact, self.store.revision)
