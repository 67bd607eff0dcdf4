"""The commands of kubectl that agents use most, by requests to the API: for machines without kubectl.

The same lines in an agent's transcript and nearly the same answers, so that a run needs nothing but Python. What is
missing here says so; nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import yaml

from srearena.conductor.actions.kubectl_command import KubectlCommand, parse_command
from srearena.errors import SreArenaError
from srearena.kubectl_output import TABLE, TemplateError, table_text, template_text
from srearena.service.kubernetes import Kubernetes, Obj, PatchKind
from srearena.service.resources import Resource
from srearena.yaml_documents import load_yaml

_REVISION = "deployment.kubernetes.io/revision"
_PATCHES: dict[str, PatchKind] = {"strategic": "strategic", "merge": "merge", "json": "json"}
_INSTALL = "kubectl is not installed on this machine (https://kubernetes.io/docs/tasks/tools/)"


class Unsupported(SreArenaError):
    """A command that only the real kubectl performs."""


class ApiKubectl:
    """kubectl for one kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        self._api = Kubernetes(kubeconfig)
        self._verbs: dict[str, Callable[[_Command], Iterator[str]]] = {
            "apply": self._apply,
            "delete": self._delete,
            "expose": self._expose,
            "get": self._get,
            "label": self._label,
            "logs": self._logs,
            "patch": self._patch,
            "rollout": self._rollout,
            "scale": self._scale,
            "taint": self._taint,
        }

    def close(self) -> None:
        self._api.close()

    def run(self, words: Sequence[str], stdin: str = "") -> tuple[int, str]:
        """Run a command; returns the exit status and the output."""
        lines: list[str] = []
        try:
            command = _Command(parse_command(words), self._api, stdin)
            perform = self._verbs.get(command.parsed.verb)
            if perform is None:
                raise Unsupported(f"`kubectl {command.parsed.verb}` does not work without it")
            lines.extend(perform(command))
        except Unsupported as problem:
            known = ", ".join(self._verbs)
            lines.append(f"error: {_INSTALL}: {problem}; without it there are {known}\n")
            return 1, "".join(lines)
        except TemplateError as problem:
            return 1, f"{problem}\n"
        except (yaml.YAMLError, ValueError, KeyError, TypeError) as problem:
            return 1, f"error: {type(problem).__name__}: {problem}\n"
        except SreArenaError as problem:
            lines.append(f"Error from server: {problem}\n")
            return 1, "".join(lines)
        return 0, "".join(lines)

    # Reading

    def _get(self, command: _Command) -> Iterator[str]:
        output = command.flag("output")
        if output in ("", "wide"):
            yield from self._tables(command, wide=output == "wide")
            return
        found: list[Obj] = []
        for resource, name in command.targets():
            scope = command.scope(resource)
            if name:
                found.append({**self._api.get(resource.name, name, scope)})
            else:
                selected = {"labels": command.flag("selector"), "fields": command.flag("field-selector")}
                found += self._api.list(resource.name, scope, **selected)
        kind, _, template = output.partition("=")
        if kind == "name":
            yield "".join(f"{_kind_name(self._api.resource_of(obj))}/{obj['metadata']['name']}\n" for obj in found)
            return
        for obj in found:
            obj["metadata"].pop("managedFields", None)
        single = len(found) == 1 and command.is_one_object
        document: Obj = found[0] if single else {"apiVersion": "v1", "items": found, "kind": "List", "metadata": {}}
        if kind == "jsonpath":
            yield template_text(template, document)
        elif kind == "json":
            yield json.dumps(document, indent=4, sort_keys=True) + "\n"
        elif kind == "yaml":
            yield yaml.safe_dump(document)
        else:
            raise Unsupported(f"the output {output!r} does not work without it")

    def _tables(self, command: _Command, *, wide: bool) -> Iterator[str]:
        targets = command.targets()
        tables: dict[str, tuple[Resource, list[Obj]]] = {}
        for resource, name in targets:
            path = resource.path(command.scope(resource), name)
            query = {"labelSelector": command.flag("selector"), "fieldSelector": command.flag("field-selector")}
            table = self._api.raw(path, accept=TABLE, query={key: value for key, value in query.items() if value})
            tables.setdefault(resource.name, (resource, []))[1].append(table)
        texts = [
            table_text(
                found,
                headers=not command.parsed.has("no-headers"),
                wide=wide,
                namespaces=command.everywhere and resource.namespaced,
                kind=_kind_name(resource) if len(tables) > 1 else "",
            )
            for resource, found in tables.values()
            if any(table.get("rows") for table in found)
        ]
        where = "" if command.everywhere else f" in {command.namespace} namespace"
        yield "\n".join(texts) or f"No resources found{where if targets[0][0].namespaced else ''}.\n"

    def _logs(self, command: _Command) -> Iterator[str]:
        names = command.names()
        if len(names) != 1 or "/" in names[0].removeprefix("pod/").removeprefix("pods/"):
            raise Unsupported("`kubectl logs` takes the name of one pod without it")
        if command.parsed.has("follow"):
            raise Unsupported("`kubectl logs --follow` does not work without it")
        yield self._api.logs(
            names[0].rpartition("/")[2],
            command.namespace,
            container=command.flag("container"),
            previous=command.parsed.has("previous"),
            tail=int(command.flag("tail") or -1) if command.flag("tail") not in ("", "-1") else None,
        )

    # Writing

    def _scale(self, command: _Command) -> Iterator[str]:
        for resource, name in command.objects():
            self._api.scale(resource.name, name, int(command.flag("replicas")), command.scope(resource))
            yield f"{_kind_name(resource)}/{name} scaled\n"

    def _patch(self, command: _Command) -> Iterator[str]:
        kind = _PATCHES.get(command.flag("type") or "strategic")
        if kind is None:
            raise Unsupported(f"there is no patch of type {command.flag('type')!r}")
        document = load_yaml(command.flag("patch"))
        for resource, name in command.objects():
            scope = command.scope(resource)
            self._api.patch(resource.name, name, document, scope, kind=kind, manager="kubectl-patch")
            yield f"{_kind_name(resource)}/{name} patched\n"

    def _delete(self, command: _Command) -> Iterator[str]:
        for resource, name in command.objects():
            scope = command.scope(resource)
            self._api.delete(resource.name, name, scope)
            where = f" from {scope} namespace" if scope else ""
            yield f'{_kind_name(resource)} "{name}" deleted{where}\n'

    def _apply(self, command: _Command) -> Iterator[str]:
        if command.flag("filename") != "-":
            raise Unsupported("`kubectl apply` reads the manifest from standard input (-f -)")
        for document in map(load_yaml, re.split(r"(?m)^---\s*$", command.stdin)):
            if document is None:
                continue
            self._api.apply(document, command.namespace, manager="kubectl-client-side-apply")
            resource = self._api.resource_of(document)
            yield f"{_kind_name(resource)}/{document['metadata']['name']} configured\n"

    def _expose(self, command: _Command) -> Iterator[str]:
        for resource, name in command.objects():
            workload = self._api.get(resource.name, name, command.namespace)
            port = int(command.flag("port"))
            target = command.flag("target-port") or str(port)
            ports = [
                {"port": port, "targetPort": int(target) if target.isdecimal() else target, "protocol": "TCP"},
            ]
            spec = {"selector": workload["spec"]["selector"]["matchLabels"], "ports": ports}
            exposed = command.flag("name") or name
            service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": exposed}, "spec": spec}
            self._api.create(service, command.namespace, manager="kubectl-expose")
            yield f"service/{exposed} exposed\n"

    def _rollout(self, command: _Command) -> Iterator[str]:
        if command.parsed.subcommand not in ("restart", "undo"):
            raise Unsupported(f"`kubectl rollout {command.parsed.subcommand}` does not work without it")
        for resource, name in command.objects(all_where_unnamed=True):
            if command.parsed.subcommand == "restart":
                self._api.restart(resource.name, name, command.namespace)
                yield f"{_kind_name(resource)}/{name} restarted\n"
            else:
                yield f"{_kind_name(resource)}/{name} {self._undo(resource, name, command)}\n"

    def _undo(self, resource: Resource, name: str, command: _Command) -> str:
        """Restore the template of the previous revision, or of the one that is named."""
        if resource.plural != "deployments":
            raise Unsupported("only Deployments are rolled back without it")
        deployment = self._api.get(resource.name, name, command.namespace)
        sets = [
            obj
            for obj in self._api.list("replicasets", command.namespace)
            if any(
                owner["uid"] == deployment["metadata"]["uid"] for owner in obj["metadata"].get("ownerReferences", ())
            )
        ]
        sets.sort(key=_revision)
        wanted = int(command.flag("to-revision") or 0)
        chosen = [one for one in sets if _revision(one) == wanted] if wanted else sets[-2:-1]
        if not chosen:
            raise Unsupported(f'error: no rollout history found for deployment "{name}"')
        template = json.loads(json.dumps(chosen[0]["spec"]["template"]))
        (template["metadata"].get("labels") or {}).pop("pod-template-hash", None)
        if template == deployment["spec"]["template"]:
            return f"skipped rollback (current template already matches revision {_revision(chosen[0])})"
        change = [{"op": "replace", "path": "/spec/template", "value": template}]
        self._api.patch(resource.name, name, change, command.namespace, kind="json", manager="kubectl-rollout")
        return "rolled back"

    def _label(self, command: _Command) -> Iterator[str]:
        words = command.names()
        changes = [word for word in words[1:] if "=" in word or word.endswith("-")]
        labels = {
            key.removesuffix("-") if not equals else key: value if equals else None
            for key, equals, value in (word.partition("=") for word in changes)
        }
        for resource, name in command.objects(words=[word for word in words if word not in changes]):
            patch = {"metadata": {"labels": labels}}
            self._api.patch(resource.name, name, patch, command.scope(resource), kind="merge", manager="kubectl-label")
            yield f"{_kind_name(resource)}/{name} {'labeled' if any(labels.values()) else 'unlabeled'}\n"

    def _taint(self, command: _Command) -> Iterator[str]:
        words = command.names()
        changes = [word for word in words[1:] if "=" in word or ":" in word or word.endswith("-")]
        if not all(change.endswith("-") for change in changes):
            raise Unsupported("`kubectl taint` only removes taints without it")
        named = [word for word in words if word not in changes]
        everything = command.parsed.has("all")
        for resource, name in command.objects(words=named, all_where_unnamed=everything):
            node = self._api.get(resource.name, name)
            taints = node["spec"].get("taints") or []
            kept = [taint for taint in taints if not any(_is_removed(taint, change) for change in changes)]
            if kept != taints:
                patch = {"spec": {"taints": kept or None}}
                self._api.patch(resource.name, name, patch, kind="merge", manager="kubectl-taint")
                yield f"node/{name} untainted\n"


class _Command:
    """A command line with what its words stand for on one cluster."""

    def __init__(self, parsed: KubectlCommand, api: Kubernetes, stdin: str) -> None:
        self.parsed = parsed
        self.stdin = stdin
        self._api = api

    def flag(self, name: str) -> str:
        values = self.parsed.values(name)
        return (values[-1] or "") if values else ""

    def names(self) -> list[str]:
        return [argument.value or "" for argument in self.parsed.arguments if not argument.flag]

    @property
    def namespace(self) -> str:
        return self.flag("namespace") or self._api.namespace

    @property
    def everywhere(self) -> bool:
        return self.parsed.has("all-namespaces")

    def scope(self, resource: Resource) -> str | None:
        return self.namespace if resource.namespaced and not self.everywhere else None

    @property
    def is_one_object(self) -> bool:
        words = self.names()
        return len(words) == 2 or (len(words) == 1 and "/" in words[0])

    def targets(self, words: Sequence[str] | None = None) -> list[tuple[Resource, str]]:
        """Kinds and names; "" where all objects of a kind are meant."""
        words = self.names() if words is None else words
        if not words:
            raise Unsupported("name the kind of objects")
        if any("/" in word for word in words):
            pairs = [word.partition("/")[::2] for word in words]
            return [(self._api.resource(kind), name) for kind, name in pairs]
        kinds = [self._api.resource(kind) for kind in words[0].split(",")]
        return [(kind, name) for kind in kinds for name in words[1:] or [""]]

    def objects(
        self, *, words: Sequence[str] | None = None, all_where_unnamed: bool = False
    ) -> list[tuple[Resource, str]]:
        """Existing objects: those that are named, selected by labels, or all of a kind where that is meant."""
        found = []
        for resource, name in self.targets(words):
            selector = self.flag("selector")
            if name:
                found.append((resource, name))
            elif selector or self.parsed.has("all") or all_where_unnamed:
                listed = self._api.list(resource.name, self.scope(resource), labels=selector)
                found += [(resource, str(obj["metadata"]["name"])) for obj in listed]
            else:
                raise Unsupported("name the objects")
        return found


def _kind_name(resource: Resource) -> str:
    """`deployment.apps`, as kubectl names objects."""
    kind = resource.kind.lower()
    return f"{kind}.{resource.group}" if resource.group else kind


def _revision(obj: Obj) -> int:
    return int((obj["metadata"].get("annotations") or {}).get(_REVISION) or 0)


def _is_removed(taint: Obj, change: str) -> bool:
    """Whether `key-`, `key:effect-` or `key=value:effect-` stands for a taint."""
    key, _, rest = change.removesuffix("-").partition("=")
    if not rest:
        key, _, effect = key.partition(":")
        return bool(taint["key"] == key and effect in ("", taint["effect"]))
    value, _, effect = rest.partition(":")
    return bool((taint["key"], taint.get("value", ""), taint["effect"]) == (key, value, effect))
