"""CustomResourceDefinitions: serve their resources, and delete the objects with the definition.

A definition is established shortly after it is stored: its names are accepted, its versions get rows in the
resource table, and from then on the API serves them like any other. Deleting it deletes every object of its kind
first.
"""

from __future__ import annotations

import orjson

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, dig, is_terminating, meta, name_of, with_condition
from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.conversion_webhooks import ConversionCalls, ConversionWebhook
from srearena.cluster.embedded.registry.custom_strategy import DefaultsWhenRead, custom_strategy
from srearena.cluster.embedded.registry.errors import aggregate
from srearena.cluster.embedded.registry.resources import SCALE, STATUS, Resource, Subresource
from srearena.cluster.embedded.registry.strategies.custom_resource_definitions import CLEANUP
from srearena.cluster.embedded.world import World

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_CLEANUP_POLL = 0.5


class CustomResourceController(Controller):
    name = "customresourcedefinition-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._served: dict[str, list[Resource]] = {}

    def start(self) -> None:
        self.watch(DEFINITIONS)

    def reconcile(self, key: str) -> None:
        definition = self.client.get(DEFINITIONS, "", key)
        if definition is None:
            self._withdraw(key)
            return
        if is_terminating(definition):
            self._clean_up(definition)
            return
        reason, message = self._conflict(definition)
        if reason:
            self._refuse(definition, reason, message)
            return
        self._serve(definition)
        self._establish(definition)

    # Serving

    def _serve(self, definition: Obj) -> None:
        key = name_of(definition)
        rows = _rows(definition, self.world.registry.conversion_calls)
        if rows != self._served.get(key):
            self._withdraw(key)
            for row in rows:
                self.world.registry.resources.add(row)
            self._served[key] = rows
        registry = self.world.registry
        for version in dig(definition, "spec", "versions", default=()):
            kind = (definition["spec"]["group"], version["name"], definition["spec"]["names"]["kind"])
            registry.custom_schemas[kind] = schemas.for_custom(dig(version, "schema", "openAPIV3Schema", default={}))
        registry.custom_strategies[key] = custom_strategy(definition, registry.custom_schemas)

    def _withdraw(self, key: str) -> None:
        registry = self.world.registry
        for row in self._served.pop(key, []):
            registry.resources.remove(row)
            registry.custom_schemas.pop((row.group, row.version, row.kind), None)
        registry.custom_strategies.pop(key, None)

    # Status

    def _conflict(self, definition: Obj) -> tuple[str, str]:
        """Reason and message where another definition of the group has a name already; of several, the last counts."""
        names, group = definition["spec"]["names"], definition["spec"]["group"]
        resources: set[str] = set()
        kinds: set[str] = set()
        for other in self.store.objects(DEFINITIONS):
            if name_of(other) == name_of(definition) or dig(other, "spec", "group") != group:
                continue
            taken = dig(other, "status", "acceptedNames", default={})
            resources |= {taken.get("plural", ""), taken.get("singular", ""), *(taken.get("shortNames") or ())}
            kinds |= {taken.get("kind", ""), taken.get("listKind", "")}
        conflict = ("", "")
        for wanted, used, reason in (
            ([names.get("plural")], resources, "PluralConflict"),
            ([names.get("singular")], resources, "SingularConflict"),
            (names.get("shortNames") or (), resources, "ShortNamesConflict"),
            ([names.get("kind")], kinds, "KindConflict"),
            ([names.get("listKind")], kinds, "ListKindConflict"),
        ):
            clashes = [name for name in wanted if name and name in used]
            if clashes:
                conflict = (reason, aggregate(f"{quoted(name)} is already in use" for name in clashes))
        return conflict

    def _refuse(self, definition: Obj, reason: str, message: str) -> None:
        verdict = {"type": "NamesAccepted", "status": "False", "reason": reason, "message": message}
        denied = {
            "type": "Established",
            "status": "False",
            "reason": "NotAccepted",
            "message": "not all names are accepted",
        }
        self._write_status(definition, [verdict, denied], accepted=False)

    def _establish(self, definition: Obj) -> None:
        accepted = {
            "type": "NamesAccepted",
            "status": "True",
            "reason": "NoConflicts",
            "message": "no conflicts found",
        }
        established = {
            "type": "Established",
            "status": "True",
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        }
        self._write_status(definition, [accepted, established], accepted=True)

    def _write_status(self, definition: Obj, verdicts: list[Obj], *, accepted: bool) -> None:
        status = dict(definition.get("status") or {})
        conditions = status.get("conditions") or []
        for verdict in verdicts:
            conditions = with_condition(conditions, verdict, self.clock.timestamp())
        status["conditions"] = conditions
        if accepted:
            status["acceptedNames"] = dict(definition["spec"]["names"])
        stored = [v["name"] for v in definition["spec"]["versions"] if v.get("storage")]
        known = status.get("storedVersions") or []
        status["storedVersions"] = [*known, *(version for version in stored if version not in known)]
        if status != definition.get("status"):
            self.client.set_status(DEFINITIONS, definition, status)

    # Deleting

    def _clean_up(self, definition: Obj) -> None:
        if CLEANUP not in (meta(definition).get("finalizers") or ()):
            return
        key = name_of(definition)
        left = self.store.objects(key)
        if left and key in self._served:
            terminating = {
                "type": "Terminating",
                "status": "True",
                "reason": "InstanceDeletionInProgress",
                "message": "CustomResource deletion is in progress",
            }
            self._write_status(definition, [terminating], accepted=True)
            for obj in left:
                if not is_terminating(obj):
                    self.client.delete(key, obj)
            self.enqueue(key, _CLEANUP_POLL)
            return

        def let_go(obj: Obj) -> None:
            obj["metadata"]["finalizers"] = [f for f in obj["metadata"].get("finalizers") or () if f != CLEANUP]

        self.client.modify(DEFINITIONS, "", key, let_go)


def _rows(definition: Obj, calls: ConversionCalls) -> list[Resource]:
    """The rows of the resource table, the preferred version first."""
    spec = definition["spec"]
    names = spec["names"]
    versions = [version for version in spec["versions"] if version.get("served")]
    storage = next((version["name"] for version in spec["versions"] if version.get("storage")), "")
    return [
        Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec.get("scope") == "Namespaced",
            singular=names.get("singular") or names["kind"].lower(),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=_subresources(version),
            storage_version=f"{spec['group']}/{storage}",
            custom=True,
            has_generation=True,
            complete=DefaultsWhenRead.of(version),
            converter=_converter(spec, calls),
            deprecation=_deprecation(spec, version),
        )
        for version in sorted(versions, key=lambda version: _version_order(version["name"]))
    ]


def _converter(spec: Obj, calls: ConversionCalls) -> ConversionWebhook | None:
    client = dig(spec, "conversion", "webhook", "clientConfig", default=None)
    if dig(spec, "conversion", "strategy", default="None") != "Webhook" or client is None:
        return None
    return ConversionWebhook(orjson.dumps(client, option=orjson.OPT_SORT_KEYS), spec["names"]["kind"], calls)


def _deprecation(spec: Obj, version: Obj) -> str:
    """What clients of a version are warned of."""
    if not version.get("deprecated"):
        return ""
    usual = f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
    return version.get("deprecationWarning") or usual


def _subresources(version: Obj) -> tuple[Subresource, ...]:
    wanted = version.get("subresources") or {}
    return tuple(row for name, row in (("scale", SCALE), ("status", STATUS)) if name in wanted)


def _version_order(name: str) -> tuple[int, int, int, str]:
    """v2 before v1, v1 before v1beta2, those before v1alpha1, anything else last by name."""
    body = name[1:] if name.startswith("v") else ""
    for rank, word in ((1, "beta"), (2, "alpha")):
        major, found, minor = body.partition(word)
        if found and major.isdigit() and minor.isdigit():
            return (rank, -int(major), -int(minor), "")
    return (0, -int(body), 0, "") if body.isdigit() else (3, 0, 0, name)
