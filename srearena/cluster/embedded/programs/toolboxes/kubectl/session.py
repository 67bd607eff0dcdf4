"""One run of kubectl: the arguments, the API, and the objects they name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.programs.toolboxes.cluster_api import ApiFailure, ClusterApi
from srearena.cluster.embedded.programs.toolboxes.kubectl.arguments import Arguments
from srearena.cluster.embedded.programs.toolboxes.kubectl.errors import KubectlError, from_server
from srearena.cluster.embedded.programs.toolboxes.kubectl.resources import Kind, Kinds
from srearena.yaml_documents import check_yaml

FIELD_MANAGER = "kubectl"


@dataclass(slots=True)
class Session:
    process: Process
    api: ClusterApi
    arguments: Arguments
    status: int = 0
    _kinds: Kinds | None = field(default=None)

    @property
    def namespace(self) -> str:
        return self.arguments.get("namespace") or self.api.namespace

    async def kinds(self) -> Kinds:
        if self._kinds is None:
            self._kinds = await Kinds.discover(self.api)
        return self._kinds

    async def say(self, text: str) -> None:
        await self.process.write(text)

    async def complain(self, problem: Exception) -> None:
        """Go on with the next object, but end with 1."""
        self.status = 1
        await self.process.error(f"{problem}\n")

    async def named(self, words: list[str]) -> list[tuple[Kind, str]]:
        """`TYPE NAME...`, `TYPE/NAME...` or `TYPE[,TYPE]`: kinds and names (empty for all of a kind)."""
        if not words:
            raise KubectlError("error: You must specify the type of resource to get.")
        kinds = await self.kinds()
        if "/" in words[0]:
            pairs = [word.partition("/") for word in words]
            for word, (_, slash, name) in zip(words, pairs, strict=True):
                if not slash or not name:
                    raise KubectlError(
                        f"error: there is no need to specify a resource type as a separate argument when passing "
                        f"arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' instead of "
                        f"'kubectl get resource resource/<resource_name>': {word}"
                    )
            return [(kinds.named(kind), name) for kind, _, name in pairs]
        chosen = [kinds.named(word) for word in words[0].split(",") if word]
        return [(kind, name) for kind in chosen for name in words[1:] or [""]]

    async def objects(self, words: list[str], verb: str) -> AsyncIterator[tuple[Kind, Obj]]:
        """Every object that the words, a selector or `--all` choose; what is missing is complained about."""
        arguments = self.arguments
        for kind, name in await self.named(words):
            if name:
                try:
                    yield kind, await self.api.call("GET", kind.path(self.namespace, name))
                except ApiFailure as failure:
                    if not (failure.not_found and arguments.switch("ignore-not-found")):
                        await self.complain(from_server(failure))
                continue
            if not (arguments.has("selector") or arguments.has("field-selector") or arguments.switch("all")):
                raise KubectlError(f"error: resource(s) were provided, but no name was specified to {verb}")
            for obj in (await self.listed(kind))["items"]:
                yield kind, obj

    async def listed(self, kind: Kind, accept: str = "application/json") -> Obj:
        everywhere = self.arguments.switch("all-namespaces")
        query = {
            key: value
            for key, value in (
                ("labelSelector", self.arguments.get("selector")),
                ("fieldSelector", self.arguments.get("field-selector")),
            )
            if value
        }
        path = kind.path("" if everywhere else self.namespace, **query)
        return await self.api.call("GET", path, accept=accept)

    async def manifests(self) -> list[Obj]:
        """The objects in the files of `-f`."""
        names = self.arguments.all("filename")
        if not names:
            raise KubectlError("error: must specify one of -f and -k")
        found: list[Obj] = []
        for name in names:
            if name == "-":
                data = b""
                while chunk := await self.process.read():
                    data += chunk
                found.extend(_objects(data.decode(errors="replace"), "STDIN"))
                continue
            for path in self._files(name):
                found.extend(_objects(self.process.files.read_text(path), path))
        if not found:
            raise KubectlError("error: no objects passed to apply")
        return found

    def _files(self, name: str) -> list[str]:
        files = self.process.files
        if files.is_dir(name):
            inside = sorted(entry for entry in files.listdir(name) if entry.endswith((".yaml", ".yml", ".json")))
            return [f"{name.rstrip('/')}/{entry}" for entry in inside]
        if not files.is_file(name):
            raise KubectlError(f'error: the path "{name}" does not exist')
        return [name]

    def home(self, kind: Kind, obj: Obj) -> str:
        """The namespace an object of a manifest goes to."""
        return str(dig(obj, "metadata", "namespace") or self.namespace) if kind.namespaced else ""


def _objects(text: str, source: str) -> Iterator[Obj]:
    try:
        check_yaml(text)
        documents: list[Any] = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError as problem:
        raise KubectlError(f"error: error parsing {source}: error converting YAML to JSON: {problem}") from None
    for document in documents:
        if document is None:
            continue
        if not isinstance(document, dict) or not document.get("kind"):
            raise KubectlError(
                f'error: error validating "{source}": error validating data: kind not set; if you choose to ignore '
                "these errors, turn validation off with --validate=false"
            )
        yield from document.get("items", ()) if document["kind"] == "List" else (document,)
