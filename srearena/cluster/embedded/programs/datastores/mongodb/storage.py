"""What a MongoDB server keeps in its data directory, and which versions can open it.

Everything is in one file, written a moment after each change as the journal would be. A server opens data of its own
feature compatibility version or of the one before it; any other is refused as mongod refuses it, with exit code 62.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.mongodb.access import User, user_from
from srearena.cluster.embedded.programs.datastores.mongodb.documents import Document
from srearena.cluster.embedded.programs.datastores.mongodb.values import packed, unpacked

RELEASES = ("3.6", "4.0", "4.2", "4.4", "5.0", "6.0", "7.0", "8.0", "8.2")
CATALOGUE = "_mdb_catalog.wt"
FILES = ("WiredTiger", "WiredTiger.wt", "WiredTiger.turtle", "storage.bson", "sizeStorer.wt")
NEED_OTHER_VERSION = 62


@dataclass(slots=True)
class Contents:
    """All that is stored."""

    compatibility: str
    databases: dict[str, dict[str, list[Document]]] = field(default_factory=dict)
    indexes: dict[str, list[Document]] = field(default_factory=dict)
    users: dict[tuple[str, str], User] = field(default_factory=dict)
    bulk: dict[str, int] = field(default_factory=dict)
    """Per `database.collection`, documents of bulk traffic that are counted and not kept."""

    def encoded(self) -> bytes:
        data = {
            "featureCompatibilityVersion": self.compatibility,
            "databases": packed(self.databases),
            "indexes": packed(self.indexes),
            "users": [user.stored() for user in self.users.values()],
            "bulk": self.bulk,
        }
        return json.dumps(data, separators=(",", ":")).encode()


def release_of(version: str) -> str:
    """4.4.6 → 4.4; a bare major number counts as its first release."""
    parts = version.split(".")
    return f"{parts[0]}.{parts[1] if len(parts) > 1 else '0'}"


def expected(release: str) -> tuple[str, ...]:
    """The feature compatibility versions a release can open."""
    if release not in RELEASES:
        return (release,)
    index = RELEASES.index(release)
    return RELEASES[max(0, index - 1) : index + 1]


def is_empty(process: Process, folder: str) -> bool:
    """Whether the image's entry point would initialise it."""
    return not any(process.files.exists(f"{folder}/{name}") for name in ("WiredTiger", "storage.bson", "journal"))


def load(process: Process, folder: str, version: str) -> Contents:
    """What the directory holds; ValueError where it is damaged."""
    path = f"{folder}/{CATALOGUE}"
    if not process.files.exists(path):
        return Contents(release_of(version))
    data: dict[str, Any] = json.loads(process.files.read_bytes(path))
    users = [user_from(stored) for stored in data["users"]]
    return Contents(
        str(data["featureCompatibilityVersion"]),
        unpacked(data["databases"]),
        unpacked(data["indexes"]),
        {(user.database, user.name): user for user in users},
        dict(data.get("bulk", {})),
    )


def save(process: Process, folder: str, contents: Contents) -> int:
    """Write it all, and return its size; OSError as the file system gives it."""
    for name in FILES:
        if not process.files.exists(f"{folder}/{name}"):
            process.files.write_bytes(f"{folder}/{name}", f"{name}\n".encode())
    encoded = contents.encoded()
    process.files.write_bytes(f"{folder}/{CATALOGUE}", encoded)
    return len(encoded)


def complaint(compatibility: str, release: str) -> str:
    """What mongod says about data of another age."""
    versions = expected(release)
    oldest = versions[0]
    wanted = " or ".join(f"'{version}'" for version in versions)
    return (
        "UPGRADE PROBLEM: Found an invalid featureCompatibilityVersion document (ERROR: Location4926900: Invalid "
        'featureCompatibilityVersion document in admin.system.version: { _id: "featureCompatibilityVersion", '
        f'version: "{compatibility}" }}. See https://docs.mongodb.com/master/release-notes/{release}-compatibility/'
        "#feature-compatibility. :: caused by :: Invalid feature compatibility version value "
        f"'{compatibility}'; expected {wanted}. See https://docs.mongodb.com/master/release-notes/{release}-"
        "compatibility/#feature-compatibility.). If the current featureCompatibilityVersion is below "
        f"{oldest}, see the documentation on upgrading at https://docs.mongodb.com/master/release-notes/{oldest}/"
        "#upgrade-procedures."
    )
