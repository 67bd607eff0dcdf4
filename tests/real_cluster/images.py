"""Container images made on the spot from what Debian packages offer and what was compiled; nothing is ever pulled.

An image is a tar file in the layout `docker save` writes, which containerd imports. The names are those of images
people know, so that the same manifests run here and on the embedded cluster; what is inside is busybox, and below it
Debian's Python or a program of the cluster where the name says so.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.real_cluster.addons import AGNHOST, COREDNS, LOCAL_PATH_PROVISIONER, METRICS_SERVER
from tests.real_cluster.compiling import Program

BUSYBOX = Path("/bin/busybox")
"""From the package busybox-static."""
PYTHON = Path("/usr/bin/python3")
"""From the package python3."""

APPLETS = (
    "sh ash cat ls echo env sleep true false id hostname date ps kill grep head tail wc test touch rm mkdir mount df "
    "printenv nc wget nslookup httpd seq dd sed awk cut sort uniq stat chmod tr expr ping tee find xargs timeout tar "
    "mv cp ln pwd basename dirname md5sum sha256sum base64 vi top free du uname whoami nproc"
).split()

INDEX = b"<html><body><h1>It works!</h1></body></html>\n"
SEARCH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WEB_SERVER = {
    "Cmd": ["/bin/httpd", "-f", "-p", "80", "-h", "/usr/share/nginx/html"],
    "ExposedPorts": {"80/tcp": {}},
}


@dataclass(frozen=True)
class Image:
    """An image's configuration, and what lies on top of busybox."""

    config: Mapping[str, Any]
    layers: Sequence[Callable[[], bytes]] = field(default=())


# What the C library loads at run time to resolve names; also a statically linked program needs it.
NAME_SERVICE = tuple(Path(f"/lib/x86_64-linux-gnu/{name}") for name in ("libnss_dns.so.2", "libresolv.so.2"))


@cache
def _busybox() -> bytes:
    shared = {*NAME_SERVICE, *libraries(NAME_SERVICE)}
    return tar_layer(
        folders=("lib64", "bin", "etc", "tmp", "proc", "sys", "dev", "root", "usr/share/nginx/html", "usr/bin"),
        files={
            "bin/busybox": BUSYBOX.read_bytes(),
            "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
            "etc/group": b"root:x:0:\nnobody:x:65534:\n",
            "etc/nsswitch.conf": b"hosts: files dns\n",
            **{str(path).lstrip("/"): path.read_bytes() for path in sorted(shared) if path.exists()},
            "usr/share/nginx/html/index.html": INDEX,
        },
        links={f"bin/{applet}": "busybox" for applet in APPLETS},
    )


@cache
def _python() -> bytes:
    """Debian's Python: its own files as dpkg lists them, and the libraries they are linked with."""
    program = PYTHON.resolve()
    version = program.name
    packages = (f"{version}-minimal", f"lib{version}-minimal", f"lib{version}-stdlib")
    listed = subprocess.run(["dpkg", "-L", *packages], capture_output=True, text=True, check=True).stdout.splitlines()
    found = {Path(line) for line in listed if line.startswith("/usr/") and Path(line).is_file()}
    found = {path for path in found if not path.is_relative_to("/usr/share")}
    found |= libraries([program, *(path for path in found if path.suffix == ".so")])
    return tar_layer(
        folders=("lib64",),
        files={str(path).lstrip("/"): path.read_bytes() for path in sorted(found)},
        links={"usr/bin/python3": version, "usr/bin/python": version},
    )


def libraries(programs: Iterable[Path]) -> set[Path]:
    """The shared libraries that programs of this machine are linked with."""
    said = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    return {Path(path) for path in re.findall(r"(/lib\S+) \(0x", said)}


def tar_layer(
    *,
    folders: Sequence[str] = (),
    files: Mapping[str, bytes] | None = None,
    links: Mapping[str, str] | None = None,
) -> bytes:
    """A layer with these folders, executable files and symbolic links."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder in folders:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            layer.addfile(entry)
        for name, content in (files or {}).items():
            _add(layer, name, content, 0o755)
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            layer.addfile(entry)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def program_image(program: Program, config: Mapping[str, Any] | None = None) -> Image:
    """An image of one program, which is its entry point."""
    return Image(
        {"Entrypoint": [program.inside], "WorkingDir": "/", **(config or {})},
        (lambda: tar_layer(files={program.inside.lstrip("/"): program.path.read_bytes()}),),
    )


def debian_image(path: Path, config: Mapping[str, Any]) -> Image:
    """An image of one program of this machine with the libraries it needs."""

    def make() -> bytes:
        found = {path, *libraries([path])}
        return tar_layer(files={str(one).lstrip("/"): one.read_bytes() for one in sorted(found)})

    return Image(config, (make,))


IMAGES: Mapping[str, Image] = {
    "registry.k8s.io/pause:3.10": Image({"Entrypoint": ["/bin/sleep", "2147483647"]}),
    "docker.io/library/busybox:1.36": Image({"Cmd": ["sh"]}),
    "docker.io/library/nginx:1.27": Image(WEB_SERVER),
    "docker.io/library/nginx:1.26": Image(WEB_SERVER),
    "docker.io/library/python:3": Image({"Cmd": ["python3"]}, (_python,)),
    COREDNS.image: program_image(COREDNS),
    METRICS_SERVER.image: program_image(METRICS_SERVER),
    LOCAL_PATH_PROVISIONER.image: program_image(LOCAL_PATH_PROVISIONER),
    AGNHOST.image: program_image(AGNHOST),
}
"""What an image is called, and what it is."""


def write_archive(path: Path, images: Mapping[str, Image] = IMAGES, base: Callable[[], bytes] = _busybox) -> None:
    """Write images into one archive; layers that several images have are written once."""
    written: dict[str, str] = {}
    with tarfile.open(path, "w") as archive:
        manifest = []
        for number, (name, image) in enumerate(images.items()):
            layers = [base(), *(make() for make in image.layers)]
            digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
            for digest, layer in zip(digests, layers, strict=True):
                if digest not in written:
                    written[digest] = f"{digest}.tar"
                    _add(archive, written[digest], layer)
            document = {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Env": [SEARCH], **image.config},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
                "author": name,
            }
            _add(archive, f"{number}.json", json.dumps(document).encode())
            manifest.append(
                {"Config": f"{number}.json", "RepoTags": [name], "Layers": [written[digest] for digest in digests]}
            )
        _add(archive, "manifest.json", json.dumps(manifest).encode())
