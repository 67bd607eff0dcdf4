"""Compaction of the key-value store: every five minutes what is older than five minutes is forgotten.

The API server of a real cluster has etcd do so, and etcd logs it. A list that was begun before, page by page, then
cannot be continued as it was; watches have a history of their own.
"""

from __future__ import annotations

from zlib import crc32

from srearena.cluster.embedded.component_logs import ETCD
from srearena.cluster.embedded.controllers.controller import Controller

INTERVAL = 300.0
"""The default of --etcd-compaction-interval."""
_OBJECT_BYTES = 3_400
"""Bytes of an object and its revisions in etcd's file. Chosen: usual of pods and leases."""
_PAGE, _KEYS_PER_MILLISECOND = 4096, 55


class Compaction(Controller):
    name = "compaction"

    def start(self) -> None:
        self.clock.after(INTERVAL, self._compact, self.store.revision)

    def _compact(self, revision: int) -> None:
        before, self.store.compacted = self.store.compacted, revision
        self._log(before, revision)
        self.clock.after(INTERVAL, self._compact, self.store.revision)

    def _log(self, before: int, revision: int) -> None:
        keys = revision - before
        objects = sum(map(self.store.count, self.store.resources()))
        used = objects * _OBJECT_BYTES // _PAGE * _PAGE
        # Pages that compaction frees stay part of the file.
        size = used + min(used, 2 * keys * _OBJECT_BYTES) // _PAGE * _PAGE
        digest = crc32(f"{revision} {used}".encode())
        sizes = f'"current-db-size-bytes":{size},"current-db-size":"{size / 1e6:.1f} MB"'
        sizes += f',"current-db-size-in-use-bytes":{used},"current-db-size-in-use":"{used / 1e6:.1f} MB"'
        taken = f'"took":"{1 + keys / _KEYS_PER_MILLISECOND:.6f}ms","number-of-keys-compacted":{keys}'
        write = self.world.component_logs.write
        write(ETCD, "I", "mvcc/index.go:214", f'"msg":"compact tree index","revision":{revision}')
        finished = f'"msg":"finished scheduled compaction","compact-revision":{revision}'
        write(ETCD, "I", "mvcc/kvstore_compaction.go:77", f'{finished},{taken},"hash":{digest},{sizes}')
        hashed = f'"msg":"storing new hash","hash":{digest},"revision":{revision},"compact-revision":{before}'
        write(ETCD, "I", "mvcc/hash.go:151", hashed)
