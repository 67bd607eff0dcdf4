"""Container images made on the spot from what Debian packages offer; nothing is ever pulled.

An image is a tar file in the layout `docker save` writes, which containerd imports. The names are those of images
people know, so that the same manifests run here and on the embedded cluster; what is inside is busybox.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BUSYBOX = Path("/bin/busybox")
"""From the package busybox-static."""

APPLETS = (
    "sh ash cat ls echo env sleep true false id hostname date ps kill grep head tail wc test touch rm mkdir mount df "
    "printenv nc wget nslookup httpd seq dd sed awk cut sort uniq stat chmod tr expr ping tee find xargs timeout"
).split()

INDEX = b"<html><body><h1>It works!</h1></body></html>\n"

Image = Mapping[str, Any]
IMAGES: Mapping[str, Image] = {
    "registry.k8s.io/pause:3.10": {"Entrypoint": ["/bin/sleep", "2147483647"]},
    "docker.io/library/busybox:1.36": {"Cmd": ["sh"]},
    "docker.io/library/nginx:1.27": {
        "Cmd": ["/bin/httpd", "-f", "-p", "80", "-h", "/usr/share/nginx/html"],
        "ExposedPorts": {"80/tcp": {}},
    },
    "docker.io/library/nginx:1.26": {
        "Cmd": ["/bin/httpd", "-f", "-p", "80", "-h", "/usr/share/nginx/html"],
        "ExposedPorts": {"80/tcp": {}},
    },
}
"""What an image is called, and its configuration."""


def write_archive(path: Path) -> None:
    """Write all images into one archive."""
    layer = _layer()
    digest = hashlib.sha256(layer).hexdigest()
    with tarfile.open(path, "w") as archive:
        _add(archive, "layer.tar", layer)
        manifest = []
        for number, (name, config) in enumerate(IMAGES.items()):
            environment = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
            document = {
                "architecture": "amd64",
                "os": "linux",
                "config": {**environment, **config},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
                "author": name,
            }
            _add(archive, f"{number}.json", json.dumps(document).encode())
            manifest.append({"Config": f"{number}.json", "RepoTags": [name], "Layers": ["layer.tar"]})
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _layer() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder in ("bin", "etc", "tmp", "proc", "sys", "dev", "root", "usr/share/nginx/html", "usr/bin"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            layer.addfile(entry)
        _add(layer, "bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for applet in APPLETS:
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(entry)
        _add(layer, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
        _add(layer, "etc/group", b"root:x:0:\nnobody:x:65534:\n")
        _add(layer, "usr/share/nginx/html/index.html", INDEX)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
