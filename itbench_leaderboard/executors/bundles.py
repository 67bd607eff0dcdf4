"""Bundle the files a run needs for another machine: the recording without its ground truth, prompts, MCP servers.

A bundle is named by its content. The other machine unpacks it once, atomically, into the cache; later runs reuse it.
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

from srearena.paths import cache_directory
from zero import prompts
from zero.evidence import Root

CHUNK = 32_000_000  # bytes; chosen: far below Ray's limit on objects in memory
_AGENT_FILES = ("litellm_config",)
_PROMPTS = ("prompt_file", "live_prompt_file")


@dataclass(frozen=True, slots=True)
class Bundle:
    """An archive. `chunks` are bytes, or references to them in transit."""

    name: str
    digest: str
    chunks: tuple[Any, ...]


def _normalized(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove owner and time, so that the same content gives the same bundle."""
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def _add(archive: tarfile.TarFile, path: Path, name: str, root: Root) -> None:
    if path.is_dir():
        archive.add(path, name, recursive=False, filter=_normalized)
        for child in sorted(path.iterdir()):
            if not root.forbids(child):
                _add(archive, child, f"{name}/{child.name}", root)
    elif path.is_file():
        archive.add(path, name, recursive=False, filter=_normalized)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(CHUNK):
        yield chunk


def pack(source: Path, send: Callable[[bytes], Any] = lambda chunk: chunk) -> Bundle:
    """Pack a file or directory, without ground truths and links to the outside; `send` is called with every chunk."""
    with tempfile.TemporaryFile() as file:
        with (
            gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0, filename="") as packed,
            # Links within the directory become copies.
            tarfile.open(fileobj=packed, mode="w", dereference=True) as archive,
        ):
            _add(archive, source, source.name, Root(source))
        digest = hashlib.sha256()
        sent = []
        for chunk in _chunks(file):
            digest.update(chunk)
            sent.append(send(chunk))
    return Bundle(source.name, digest.hexdigest()[:32], tuple(sent))


def pack_prompt(path: Path, send: Callable[[bytes], Any] = lambda chunk: chunk) -> Bundle:
    """Pack a prompt with its includes resolved."""
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        whole = Path(folder) / path.name
        whole.write_text(prompts.flattened(path), encoding="utf-8")
        return pack(whole, send)


def unpack(bundle: Bundle, fetch: Callable[[Any], bytes] = lambda chunk: bytes(chunk)) -> Path:
    """Unpack a bundle into the cache, unless it is there already; returns the path of its content."""
    cache = cache_directory() / "shipped"
    cache.mkdir(parents=True, exist_ok=True)
    directory = cache / bundle.digest
    with (cache / f"{bundle.digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.is_dir():
            draft = cache / f"{bundle.digest}.draft"
            shutil.rmtree(draft, ignore_errors=True)
            with tempfile.TemporaryFile() as file:
                for chunk in bundle.chunks:
                    file.write(fetch(chunk))
                file.seek(0)
                with tarfile.open(fileobj=file, mode="r:gz") as archive:
                    archive.extractall(draft, filter="data")
            draft.rename(directory)
    return directory / bundle.name


def local_paths(document: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """The paths of a job on this machine, and whether they are prompts."""
    if document["incident"]["path"]:
        yield document["incident"]["path"], False
    agent = document["agent"]
    for key in _PROMPTS:
        if agent.get(key) and Path(agent[key]).is_file():
            yield agent[key], True
    for path in (*(agent.get(key) for key in _AGENT_FILES), *agent.get("mcp_servers", ())):
        if path:
            yield path, False


def relocated(document: Mapping[str, Any], paths: Mapping[str, Path]) -> dict[str, Any]:
    """The job with its paths replaced."""

    def replaced(path: Any) -> Any:
        return str(paths[path]) if path in paths else path

    agent = {key: replaced(value) if isinstance(value, str) else value for key, value in document["agent"].items()}
    agent["mcp_servers"] = [replaced(path) for path in agent.get("mcp_servers", ())]
    incident = {**document["incident"], "path": replaced(document["incident"]["path"])}
    return {**document, "agent": agent, "incident": incident}


def unpacked(
    document: Mapping[str, Any], bundles: Iterable[tuple[str, Bundle]], fetch: Callable[[Any], bytes]
) -> dict[str, Any]:
    """Unpack the bundles of a job and replace its paths."""
    return relocated(document, {original: unpack(bundle, fetch) for original, bundle in bundles})
