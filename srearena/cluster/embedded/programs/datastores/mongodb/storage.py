"""What a MongoDB server keeps in its data directory, and which versions can open it.

As WiredTiger does it keeps a file for each collection, and a catalogue with the names that belong to them; they are
written a moment after each change as the journal would be. A file begins with a block that says what it is; without it
nothing of the file can be salvaged. A server opens data of its own feature compatibility version or of the one before;
any other is refused as mongod refuses it, with exit code 62.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import is_not
from typing import Any
from zlib import crc32

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.mongodb.access import User, user_from
from srearena.cluster.embedded.programs.datastores.mongodb.documents import Document
from srearena.cluster.embedded.programs.datastores.mongodb.values import packed, unpacked

RELEASES = ("3.6", "4.0", "4.2", "4.4", "5.0", "6.0", "7.0", "8.0", "8.2")
CATALOGUE = "_mdb_catalog.wt"
FILES = ("WiredTiger", "WiredTiger.wt", "WiredTiger.turtle", "storage.bson", "sizeStorer.wt")
NEED_OTHER_VERSION = 62
BLOCK = 4096
_HEADER = b"\x41\xd8\x01\x00\x01\x00\x00\x00".ljust(BLOCK, b"\0")
"""The description block of a file: WiredTiger's magic number and the version of the format."""
_USERS = "admin.system.users"
_ILLEGAL = "encountered an illegal file format or internal value"


class Damaged(Exception):
    """A file is not what was written."""

    def __init__(self, file: str, why: str, lines: list[bytes] | None = None) -> None:
        super().__init__(why)
        self.file = file
        self.why = why
        self.lines = lines
        """What can be salvaged; None where the file is not recognised at all."""


@dataclass(slots=True)
class Contents:
    """All that is stored."""

    compatibility: str
    databases: dict[str, dict[str, list[Document]]] = field(default_factory=dict)
    indexes: dict[str, list[Document]] = field(default_factory=dict)
    users: dict[tuple[str, str], User] = field(default_factory=dict)
    bulk: dict[str, int] = field(default_factory=dict)
    """Per `database.collection`, documents of bulk traffic that are counted and not kept."""

    idents: dict[str, str] = field(default_factory=dict)
    """Per `database.collection`, the name of its file."""
    written: dict[str, int] = field(default_factory=dict)
    """Per file, the checksum of what was last written."""
    saved: dict[str, tuple[list[Document], list[bytes]]] = field(default_factory=dict)
    """Per file of a collection, the documents that were last written, and their records."""

    def documents(self) -> Iterator[tuple[str, list[Any]]]:
        """The namespaces and their documents, users among them."""
        for database, collections in self.databases.items():
            for name, documents in collections.items():
                yield f"{database}.{name}", documents
        if self.users:
            yield _USERS, [user.stored() for user in self.users.values()]


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
    """What the directory holds; `Damaged` where a file is."""
    if not process.files.exists(f"{folder}/{CATALOGUE}"):
        return Contents(release_of(version))
    contents = _catalogue(process, folder)
    for namespace, ident in contents.idents.items():
        _put(contents, namespace, _lines(process, folder, f"{ident}.wt"))
    return contents


def _put(contents: Contents, namespace: str, lines: list[bytes]) -> None:
    """Add the records of a file; `Damaged` where they are sound, but not what belongs there."""
    try:
        documents = [unpacked(json.loads(line)) for line in lines]
        users = [user_from(stored) for stored in documents] if namespace == _USERS else []
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Damaged(f"{contents.idents[namespace]}.wt", _ILLEGAL) from None
    if namespace == _USERS:
        contents.users = {(user.database, user.name): user for user in users}
    else:
        database, _, name = namespace.partition(".")
        contents.databases.setdefault(database, {})[name] = documents


def _is_record(namespace: str, line: bytes) -> bool:
    try:
        _put(Contents("", idents={namespace: ""}), namespace, [line])
    except Damaged:
        return False
    return True


def _catalogue(process: Process, folder: str) -> Contents:
    """What the catalogue says, without any collection."""
    lines = _lines(process, folder, CATALOGUE)
    try:
        data: dict[str, Any] = json.loads(b"".join(lines))
        return Contents(
            str(data["featureCompatibilityVersion"]),
            indexes=unpacked(data["indexes"]),
            bulk={str(place): int(count) for place, count in data["bulk"].items()},
            idents={str(namespace): str(ident) for namespace, ident in data["idents"].items()},
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Damaged(CATALOGUE, _ILLEGAL) from None


def _lines(process: Process, folder: str, file: str) -> list[bytes]:
    """The records of a file."""
    path = f"{folder}/{file}"
    data = process.files.read_bytes(path) if process.files.exists(path) else b""
    if data[:BLOCK] != _HEADER:
        raise Damaged(file, f"__desc_read, 325: {file} does not appear to be a WiredTiger file")
    lines = [line for line in data[BLOCK:].split(b"\n") if line.strip(b"\0")]
    sound = [line for line in lines if _is_sound(line)]
    if len(sound) < len(lines):
        where = f"{file}: read checksum error for 4096B block at offset 4096: potential hardware corruption"
        raise Damaged(file, f"__wt_block_read_off, 274: {where}", sound)
    return lines


def _is_sound(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def save(process: Process, folder: str, contents: Contents) -> int:
    """Write what has changed, and return the size of all; OSError as the file system gives it."""
    for name in FILES:
        if not process.files.exists(f"{folder}/{name}"):
            process.files.write_bytes(f"{folder}/{name}", f"{name}\n".encode())
    total = 0
    kept: dict[str, str] = {}
    for namespace, documents in contents.documents():
        ident = kept[namespace] = contents.idents.get(namespace) or _new_ident(contents, namespace)
        contents.idents[namespace] = ident
        total += _write_collection(process, folder, f"{ident}.wt", documents, contents)
        index = ident.replace("collection-", "index-", 1)
        total += _write(process, folder, f"{index}.wt", [], contents)
    for namespace in [name for name in contents.idents if name not in kept]:
        ident = contents.idents.pop(namespace)
        for file in (f"{ident}.wt", f"{ident.replace('collection-', 'index-', 1)}.wt"):
            contents.written.pop(file, None)
            contents.saved.pop(file, None)
            if process.files.exists(f"{folder}/{file}"):
                process.files.unlink(f"{folder}/{file}")
    catalogue = {
        "featureCompatibilityVersion": contents.compatibility,
        "idents": contents.idents,
        "indexes": packed(contents.indexes),
        "bulk": contents.bulk,
    }
    encoded = json.dumps(catalogue, separators=(",", ":")).encode()
    return total + _write(process, folder, CATALOGUE, [encoded], contents)


def _new_ident(contents: Contents, namespace: str) -> str:
    numbers = [int(ident.split("-")[1]) for ident in contents.idents.values()]
    return f"collection-{max(numbers, default=-2) + 2}--{crc32(namespace.encode()) * 1_000_003}"


def _write_collection(process: Process, folder: str, file: str, documents: list[Document], contents: Contents) -> int:
    """Write a collection, and encode the documents that are not those of the last time: none is changed in place."""
    known, rows = contents.saved.get(file, ([], []))
    if len(known) != len(documents) or any(map(is_not, known, documents)):
        encoded = {id(document): row for document, row in zip(known, rows, strict=True)}
        rows = [encoded.get(id(document)) or _record_of(document) for document in documents]
        contents.saved[file] = list(documents), rows
    return _write(process, folder, file, rows, contents)


def _record_of(document: Document) -> bytes:
    return json.dumps(packed(document), separators=(",", ":")).encode()


def _write(process: Process, folder: str, file: str, rows: list[bytes], contents: Contents) -> int:
    body = b"".join(row + b"\n" for row in rows)
    checksum = crc32(body)
    if contents.written.get(file) != checksum:
        padding = -len(body) % BLOCK
        process.files.write_bytes(f"{folder}/{file}", _HEADER + body + bytes(padding))
        contents.written[file] = checksum
    return len(body)


@dataclass(slots=True)
class Repair:
    """What `mongod --repair` did: the files that it gave up, those it salvaged, and collections without a name."""

    lost: list[str] = field(default_factory=list)
    salvaged: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)


def repair(process: Process, folder: str, version: str) -> Repair:
    """Make the directory openable again.

    A file that is not recognised is moved out of the way and begun anew, of another the sound records are kept. Without
    the catalogue the databases of the collections are unknown: they become collections of the database `local`.
    """
    done = Repair()
    try:
        contents = _catalogue(process, folder)
    except Damaged as damage:
        contents = Contents(release_of(version))
        _set_aside(process, folder, damage.file, done)
        files = [name for name in process.files.listdir(folder) if name.startswith("collection-")]
        for ident in sorted(name.removesuffix(".wt") for name in files if name.endswith(".wt")):
            namespace = f"local.orphan.{ident.replace('-', '_')}"
            contents.idents[namespace] = ident
            done.orphans.append(namespace)
    for namespace, ident in contents.idents.items():
        try:
            _put(contents, namespace, _lines(process, folder, f"{ident}.wt"))
        except Damaged as damage:
            salvaged = [line for line in damage.lines or () if _is_record(namespace, line)]
            if damage.lines is None:
                _set_aside(process, folder, damage.file, done)
            else:
                done.salvaged.append(damage.file)
            _put(contents, namespace, salvaged)
    save(process, folder, contents)
    return done


def _set_aside(process: Process, folder: str, file: str, done: Repair) -> None:
    done.lost.append(file)
    if process.files.exists(f"{folder}/{file}"):
        process.files.rename(f"{folder}/{file}", f"{folder}/{file}.corrupt")


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
