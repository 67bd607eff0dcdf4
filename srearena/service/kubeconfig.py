"""Reading a kubeconfig: where the API server is, how to trust it, and who we are to it.

Client certificates, bearer tokens (inline or in a file) and basic credentials are understood. Plug-ins that run a
program to log in are refused with a word on what to do instead: they start foreign code, and what they return expires
in the middle of an episode.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from srearena.service.errors import KubeconfigError


@dataclass(frozen=True, slots=True)
class Access:
    """Everything a connection needs."""

    server: str
    headers: dict[str, str]
    tls: ssl.SSLContext | None
    """None where the server speaks plain HTTP."""
    namespace: str
    server_name: str = ""
    """The name in the server's certificate, where it differs from the host."""


def read_kubeconfig(path: Path, context: str | None = None) -> Access:
    """The access a kubeconfig's current context (or the given one) describes."""
    document = _document(path)
    wanted = context or document.get("current-context") or ""
    if not wanted:
        raise KubeconfigError(f"{path} has no current-context: name one, or run `kubectl config use-context`")
    chosen = _entry(path, document, "contexts", "context", wanted)
    cluster = _entry(path, document, "clusters", "cluster", str(chosen.get("cluster", "")))
    user = _entry(path, document, "users", "user", str(chosen["user"])) if chosen.get("user") else {}
    server = str(cluster.get("server") or "").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise KubeconfigError(f"{path}: cluster {chosen.get('cluster')!r} has no server address")
    return Access(
        server=server,
        headers=_headers(path, user),
        tls=_tls(path, cluster, user) if server.startswith("https://") else None,
        namespace=str(chosen.get("namespace") or "default"),
        server_name=str(cluster.get("tls-server-name") or ""),
    )


def _document(path: Path) -> dict[str, Any]:
    try:
        document = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as problem:
        raise KubeconfigError(f"the kubeconfig {path} cannot be read: {problem.strerror}") from problem
    except yaml.YAMLError as problem:
        raise KubeconfigError(f"the kubeconfig {path} is not YAML: {problem}") from problem
    if not isinstance(document, dict):
        raise KubeconfigError(f"{path} is no kubeconfig: it holds no mapping")
    return document


def _entry(path: Path, document: dict[str, Any], section: str, field: str, name: str) -> dict[str, Any]:
    for entry in document.get(section) or ():
        if isinstance(entry, dict) and entry.get("name") == name:
            return entry.get(field) or {}
    raise KubeconfigError(f"{path}: there is no {field} named {name!r} under {section}")


def _headers(path: Path, user: dict[str, Any]) -> dict[str, str]:
    if user.get("exec") or user.get("auth-provider"):
        raise KubeconfigError(
            f"{path} logs in through a plug-in, which is not supported here: use a client certificate or a token "
            "(for example `kubectl create token` for a service account)"
        )
    if user.get("tokenFile"):
        token = _beside(path, str(user["tokenFile"])).read_text().strip()
        return {"authorization": f"Bearer {token}"}
    if user.get("token"):
        return {"authorization": f"Bearer {user['token']}"}
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        return {"authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


def _tls(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    authority = _material(path, cluster, "certificate-authority")
    try:
        if authority:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(cadata=authority.decode())
        else:
            context = ssl.create_default_context()
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate, key = (_material(path, user, f"client-{part}") for part in ("certificate", "key"))
        if certificate and key:
            _load_chain(context, certificate, key)
    except (ssl.SSLError, ValueError) as problem:
        raise KubeconfigError(f"{path}: a certificate or key in it cannot be used: {problem}") from problem
    return context


def _load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Python's TLS takes a client's key from files only: they exist for this moment, for their owner."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="client-"))
        names = []
        for name, content in (("certificate", certificate), ("key", key)):
            file = Path(folder) / name
            file.touch(mode=0o600)
            file.write_bytes(content)
            names.append(os.fspath(file))
        context.load_cert_chain(*names)


def _material(path: Path, entry: dict[str, Any], field: str) -> bytes:
    """Inline data or a file's content; empty where the entry has neither."""
    inline = entry.get(f"{field}-data")
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except (binascii.Error, ValueError) as problem:
            raise KubeconfigError(f"{path}: {field}-data is not base64") from problem
    if entry.get(field):
        file = _beside(path, str(entry[field]))
        try:
            return file.read_bytes()
        except OSError as problem:
            raise KubeconfigError(f"{path}: {field} {file} cannot be read: {problem.strerror}") from problem
    return b""


def _beside(path: Path, name: str) -> Path:
    """A file a kubeconfig names: relative names are relative to it."""
    return path.parent / Path(name).expanduser()
