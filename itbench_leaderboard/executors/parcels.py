"""What a run needs of this machine, packed for another: the recording without its answer key, prompts, MCP servers.

A parcel is named by its content. The machine that gets one unpacks it once, into the cache, as a whole or not at all;
runs that come later find it there.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from srearena.snapshots.cache import default_directory
from zero import prompts
from zero.evidence import forbidden

PIECE = 32_000_000
_AGENT_FILES = ("litellm_config",)
_PROMPTS = ("prompt_file", "live_prompt_file")


@dataclass(frozen=True, slots=True)
class Parcel:
    """`pieces` are bytes, or whatever stands for them on the way."""

    name: str
    digest: str
    pieces: tuple[Any, ...]


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The same content is the same parcel, whoever owns it and whenever it was written."""
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def _add(archive: tarfile.TarFile, path: Path, name: str, root: Path) -> None:
    if path.is_dir():
        archive.add(path, name, recursive=False, filter=_plain)
        for child in sorted(path.iterdir()):
            if not forbidden(child, root):
                _add(archive, child, f"{name}/{child.name}", root)
    elif path.is_file():
        archive.add(path, name, recursive=False, filter=_plain)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while piece := file.read(PIECE):
        yield piece


def pack(source: Path, send: Callable[[bytes], Any] = lambda piece: piece) -> Parcel:
    """A file or a directory, without answer keys and links that lead out; `send` is given every piece."""
    with tempfile.TemporaryFile() as file:
        with (
            gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0, filename="") as packed,
            # Links that stay inside become what they lead to.
            tarfile.open(fileobj=packed, mode="w", dereference=True) as archive,
        ):
            _add(archive, source, source.name, source)
        digest = hashlib.sha256()
        sent = []
        for piece in _pieces(file):
            digest.update(piece)
            sent.append(send(piece))
    return Parcel(source.name, digest.hexdigest()[:32], tuple(sent))


def pack_prompt(path: Path, send: Callable[[bytes], Any] = lambda piece: piece) -> Parcel:
    """A prompt with its includes in place."""
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        whole = Path(folder) / path.name
        whole.write_text(prompts.flattened(path), encoding="utf-8")
        return pack(whole, send)


def unpack(parcel: Parcel, fetch: Callable[[Any], bytes] = lambda piece: bytes(piece)) -> Path:
    """Where a parcel's content is on this machine; pieces are fetched only if it is not here yet."""
    shelf = default_directory() / "shipped"
    shelf.mkdir(parents=True, exist_ok=True)
    place = shelf / parcel.digest
    with (shelf / f"{parcel.digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.is_dir():
            draft = shelf / f"{parcel.digest}.draft"
            shutil.rmtree(draft, ignore_errors=True)
            with tempfile.TemporaryFile() as file:
                for piece in parcel.pieces:
                    file.write(fetch(piece))
                file.seek(0)
                with tarfile.open(fileobj=file, mode="r:gz") as archive:
                    archive.extractall(draft, filter="data")
            draft.rename(place)
    return place / parcel.name


def needed(document: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The paths in a job that lie on this machine, and whether they are prompts."""
    if document["incident"]["path"]:
        yield document["incident"]["path"], False
    agent = document["agent"]
    for key in _PROMPTS:
        if agent.get(key) and Path(agent[key]).is_file():
            yield agent[key], True
    for path in (*(agent.get(key) for key in _AGENT_FILES), *agent.get("mcp_servers", ())):
        if path:
            yield path, False


def relocated(document: Mapping[str, Any], places: Mapping[str, Path]) -> dict[str, Any]:
    """The job with its paths led to where they are now."""

    def led(path: Any) -> Any:
        return str(places[path]) if path in places else path

    agent = {key: led(value) if isinstance(value, str) else value for key, value in document["agent"].items()}
    agent["mcp_servers"] = [led(path) for path in agent.get("mcp_servers", ())]
    incident = {**document["incident"], "path": led(document["incident"]["path"])}
    return {**document, "agent": agent, "incident": incident}


def unpacked(
    document: Mapping[str, Any], parcels: Iterable[tuple[str, Parcel]], fetch: Callable[[Any], bytes]
) -> dict[str, Any]:
    """A job that came with parcels, ready to be carried out here."""
    return relocated(document, {original: unpack(parcel, fetch) for original, parcel in parcels})
