"""Reading a kubeconfig: the API server's address, its certificate authority, and the client's credentials.

Client certificates, bearer tokens (inline or in a file) and basic credentials are supported. Credential plug-ins are
rejected with advice: they run external programs, and their tokens expire in the middle of an episode.
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

from srearena.errors import one_line
from srearena.service.errors import KubeconfigError


@dataclass(frozen=True, slots=True)
class Access:
    """What a client needs to connect."""

    server: str
    headers: dict[str, str]
    tls: ssl.SSLContext | None
    """None for plain HTTP."""
    namespace: str
    server_name: str = ""
    """The name in the server's certificate, where it differs from the host."""


def read_kubeconfig(path: Path, context: str | None = None, *, has_tls: bool = True) -> Access:
    """Read the access that the current context (or the named one) describes; certificates only with `has_tls`."""
    document = _document(path)
    selected = context or document.get("current-context") or ""
    if not selected:
        raise KubeconfigError(f"{path} has no current-context: name one, or run `kubectl config use-context`")
    entry = _entry(path, document, "contexts", "context", selected)
    cluster = _entry(path, document, "clusters", "cluster", str(entry.get("cluster", "")))
    user = _entry(path, document, "users", "user", str(entry["user"])) if entry.get("user") else {}
    server = str(cluster.get("server") or "").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise KubeconfigError(f"{path}: cluster {entry.get('cluster')!r} has no server address")
    return Access(
        server=server,
        headers=_headers(path, user),
        tls=_tls(path, cluster, user) if has_tls and server.startswith("https://") else None,
        namespace=str(entry.get("namespace") or "default"),
        server_name=str(cluster.get("tls-server-name") or ""),
    )


def _document(path: Path) -> dict[str, Any]:
    try:
        document = yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as problem:
        raise KubeconfigError(f"the kubeconfig {path} cannot be read: {problem.strerror}") from problem
    except yaml.YAMLError as problem:
        raise KubeconfigError(f"the kubeconfig {path} is not YAML: {one_line(problem)}") from problem
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
    authority = _certificate_data(path, cluster, "certificate-authority")
    try:
        if authority:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(cadata=authority.decode())
        else:
            context = ssl.create_default_context()
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate, key = (_certificate_data(path, user, f"client-{part}") for part in ("certificate", "key"))
        if certificate and key:
            _load_chain(context, certificate, key)
    except (ssl.SSLError, ValueError) as problem:
        raise KubeconfigError(f"{path}: a certificate or key in it cannot be used: {problem}") from problem
    return context


def _load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a client certificate. Python reads it from files only, so private ones exist during the call."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="client-"))
        names = []
        for name, content in (("certificate", certificate), ("key", key)):
            file = Path(folder) / name
            file.touch(mode=0o600)
            file.write_bytes(content)
            names.append(os.fspath(file))
        context.load_cert_chain(*names)


def _certificate_data(path: Path, entry: dict[str, Any], field: str) -> bytes:
    """The inline data or file content of a field; empty where the entry has neither."""
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
    """Resolve a file name relative to the kubeconfig."""
    return path.parent / Path(name).expanduser()
