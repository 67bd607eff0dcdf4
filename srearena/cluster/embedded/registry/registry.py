"""The registry: create, update, apply and delete objects under the rules every writer is held to.

The order is the real server's: defaults, mutating admission, preparation and validation by the resource's strategy,
validating admission, field ownership, storage. Nothing is stored unless every step agreed; a write that changes
nothing is not stored at all. Objects passed in are taken over and may be changed; objects returned are the stored
ones and must not be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.component_logs import ComponentLogs
from srearena.cluster.embedded.objects import Obj, copy_of, is_terminating, meta, uid_of
from srearena.cluster.embedded.randomness import Randomness
from srearena.cluster.embedded.registry import conversion, names, schemas
from srearena.cluster.embedded.registry.admission.chain import AdmissionChain, Attributes, Operation
from srearena.cluster.embedded.registry.conversion_webhooks import ConversionCalls
from srearena.cluster.embedded.registry.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    FieldError,
    Invalid,
    NotFound,
)
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.patch.managed_fields import same_owners, update_managed_fields
from srearena.cluster.embedded.registry.resources import Resource, ResourceTable
from srearena.cluster.embedded.registry.schema import Schema
from srearena.cluster.embedded.registry.strategies import built_in
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext
from srearena.cluster.embedded.store import Store

_GENERATED_NAME_TRIES = 8
_GENERIC = Strategy()


@dataclass(slots=True)
class WriteOptions:
    """How a write is made, and what is said back about it."""

    user: User
    field_manager: str = "unknown"
    dry_run: bool = False
    operation: str = "Update"
    """`Update` or `Apply`, as managed fields distinguish them."""
    warnings: list[str] = field(default_factory=list)


class Registry:
    def __init__(self, clock: Clock, store: Store, randomness: Randomness) -> None:
        self.clock = clock
        self.store = store
        self.randomness = randomness
        self.component_logs = ComponentLogs()
        self.resources = ResourceTable()
        self.admission = AdmissionChain()
        self.conversion_calls = ConversionCalls(clock, randomness)
        self.custom_strategies: dict[str, Strategy] = {}
        self.custom_schemas: dict[tuple[str, str, str], Schema] = {}

    # Reading

    def get(self, row: Resource, namespace: str, name: str) -> Obj:
        return conversion.from_storage(row, self._stored(row, namespace, name))

    def objects(self, row: Resource, namespace: str = "") -> list[Obj]:
        return conversion.all_from_storage(row, self.store.objects(row.storage_key, namespace))

    def row(self, group_resource: str) -> Resource:
        """The preferred version of a resource that is certainly served."""
        found = self.resources.preferred(group_resource)
        if found is None:
            raise NotFound()
        return found

    def strategy(self, row: Resource) -> Strategy:
        return built_in().get(row.group_resource) or self.custom_strategies.get(row.group_resource) or _GENERIC

    def schema(self, row: Resource) -> Schema:
        kind = (row.group, row.version, row.kind)
        found = self.custom_schemas.get(kind) or schemas.for_kind(*kind)
        if found is None:
            raise LookupError(f"no schema for {row.api_version} {row.kind}")
        return found

    # Creating

    def create(self, row: Resource, namespace: str, obj: Obj, options: WriteOptions) -> Obj:
        self._claim_identity(row, namespace, obj)
        obj = conversion.to_storage(row, obj)
        strategy, context = self.strategy(row), self._context(options)
        if row.has_status and not strategy.keeps_status_on_create:
            obj.pop("status", None)
        if strategy.default:
            strategy.default(obj)
        # The writer owns what it wrote and its defaults, not what admission and the server itself add.
        self._own_fields(row, None, obj, options, "")
        attributes = self._attributes("CREATE", row, namespace, options, obj=obj)
        self.admission.admit(attributes)
        obj = attributes.obj if attributes.obj is not None else obj
        if strategy.default:
            strategy.default(obj)
        generated = self._complete_metadata(row, obj, attributes)
        if strategy.prepare_create:
            strategy.prepare_create(obj, context)
        self._check(row, obj, None, strategy)
        standing = self.store.get(row.storage_key, namespace, obj["metadata"]["name"])
        if standing is not None:
            going = "deletionTimestamp" in standing["metadata"]
            raise AlreadyExists(row.group_resource, obj["metadata"]["name"], generated=generated, going=going)
        self.admission.validate(attributes)
        if strategy.warnings:
            options.warnings.extend(strategy.warnings(obj))
        if strategy.defaults_when_read and strategy.default:
            strategy.default(obj)
        if row.converter is not None:
            conversion.from_storage(row, obj)  # a webhook that must be waited for is asked before anything is stored
        stored = obj if options.dry_run else self.store.put(row.storage_key, obj)
        return conversion.from_storage(row, stored)

    def _claim_identity(self, row: Resource, namespace: str, obj: Obj) -> None:
        """Settle namespace and the fields of metadata that only the server writes."""
        metadata = obj.setdefault("metadata", {})
        if row.namespaced:
            if metadata.setdefault("namespace", namespace) != namespace:
                raise BadRequest(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
        elif metadata.pop("namespace", ""):
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        if metadata.get("resourceVersion"):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        for key in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "creationTimestamp"):
            metadata.pop(key, None)

    def _complete_metadata(self, row: Resource, obj: Obj, attributes: Attributes) -> bool:
        metadata = obj["metadata"]
        generated = not metadata.get("name") and bool(metadata.get("generateName"))
        if generated:
            metadata["name"] = self._generated_name(row, metadata)
        attributes.name = metadata.get("name", "")
        metadata["uid"] = self.randomness.uid()
        metadata["creationTimestamp"] = self.clock.timestamp()
        metadata.pop("generation", None)
        if row.has_generation:
            metadata["generation"] = 1
        return generated

    def _generated_name(self, row: Resource, metadata: Obj) -> str:
        base = str(metadata["generateName"])[:58]
        name = ""
        for _ in range(_GENERATED_NAME_TRIES):
            name = base + self.randomness.suffix()
            if self.store.get(row.storage_key, metadata.get("namespace", ""), name) is None:
                break
        return name

    # Updating

    def update(
        self,
        row: Resource,
        namespace: str,
        name: str,
        change: Callable[[Obj], Obj],
        options: WriteOptions,
        subresource: str = "",
        *,
        copied: bool = True,
    ) -> Obj:
        """Replace an object by what `change` makes of a copy of it (in this row's version).

        Not `copied`, it is given the stored object: it may build a new one around its parts, and change none.
        """
        old = self._stored(row, namespace, name)
        current = conversion.from_storage(row, old)
        shown = change(copy_of(current) if copied else current)
        self._check_precondition(row, name, shown, old)
        obj = conversion.to_storage(row, shown)
        strategy, context = self.strategy(row), self._context(options)
        strategy = strategy.subresources.get(subresource, strategy)
        self._keep_identity(obj, old)
        if subresource == "status":
            obj = _status_write(obj, old, annotations=not row.custom)
            if strategy.prepare_status:
                strategy.prepare_status(obj, old, context)
        else:
            if row.has_status and not subresource:
                _keep(obj, old, "status")
            if strategy.default:
                strategy.default(obj)
        attributes = self._attributes("UPDATE", row, namespace, options, obj=obj, old=old, name=name)
        attributes.subresource = subresource
        self.admission.admit(attributes)
        obj = attributes.obj if attributes.obj is not None else obj
        if subresource != "status":
            if strategy.prepare_update:
                strategy.prepare_update(obj, old, context)
            if row.has_generation:
                self._count_generation(obj, old)
            self._check(row, obj, old, strategy)
        elif strategy.validate_status:
            self._refuse(row, name, strategy.validate_status(obj, old))
        self.admission.validate(attributes)
        if strategy.warnings and not subresource:
            options.warnings.extend(strategy.warnings(obj))
        # A client may also change nothing but who owns the fields.
        same_entries = obj["metadata"].get("managedFields") == meta(old).get("managedFields")
        if same_entries and _same(obj, old) and options.operation != "Apply":
            return conversion.from_storage(row, old)
        self._own_fields(row, old, obj, options, subresource)
        if _same(obj, old) and same_owners(obj["metadata"].get("managedFields"), meta(old).get("managedFields")):
            return conversion.from_storage(row, old)
        if row.converter is not None:
            conversion.from_storage(row, obj)  # as on creation
        if is_terminating(obj) and not obj["metadata"].get("finalizers") and self._may_vanish(row, obj):
            return conversion.from_storage(row, obj if options.dry_run else self.vanish(row, obj, options))
        return conversion.from_storage(row, obj if options.dry_run else self.store.put(row.storage_key, obj))

    def _check_precondition(self, row: Resource, name: str, new: Obj, old: Obj) -> None:
        metadata = meta(new)
        version = metadata.get("resourceVersion")
        if version and version != meta(old)["resourceVersion"]:
            raise Conflict(row.group_resource, name)
        if not version and self.strategy(row).conditional_update_only:
            problem = FieldError.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise Invalid(row.group_kind, name, [problem])
        uid = metadata.get("uid")
        if uid and uid != uid_of(old):
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {uid_of(old)}"
            raise Conflict(row.group_resource, name, why)

    def _keep_identity(self, obj: Obj, old: Obj) -> None:
        """Metadata that belongs to the server stays what it was, whatever the client sent."""
        metadata, before = obj.setdefault("metadata", {}), meta(old)
        for key in (
            "uid",
            "creationTimestamp",
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "resourceVersion",
        ):
            if key in before:
                metadata[key] = before[key]
            else:
                metadata.pop(key, None)
        metadata.pop("selfLink", None)
        if "managedFields" not in metadata and "managedFields" in before:
            metadata["managedFields"] = before["managedFields"]

    def _count_generation(self, obj: Obj, old: Obj) -> None:
        if any(obj.get(key) != old.get(key) for key in {*obj, *old} - {"metadata", "status", "apiVersion", "kind"}):
            obj["metadata"]["generation"] = meta(old).get("generation", 0) + 1

    # Deleting: the rules for lingering objects are in `deletion`; these are the two ways out of the store.

    def vanish(self, row: Resource, obj: Obj, options: WriteOptions) -> Obj:
        """Take the object out of the store for good."""
        metadata = obj["metadata"]
        gone = self.store.remove(row.storage_key, metadata.get("namespace", ""), metadata["name"])
        strategy = self.strategy(row)
        if strategy.forget:
            strategy.forget(gone, self._context(options))
        return gone

    def _may_vanish(self, row: Resource, obj: Obj) -> bool:
        """Whether nothing else holds a terminating object: its grace period is over or was never there."""
        return not obj["metadata"].get("deletionGracePeriodSeconds") and not (
            row.group_resource == "namespaces" and obj.get("spec", {}).get("finalizers")
        )

    # Shared steps

    def _stored(self, row: Resource, namespace: str, name: str) -> Obj:
        found = self.store.get(row.storage_key, namespace, name)
        if found is None:
            raise NotFound(row.group_resource, name)
        return found

    def _context(self, options: WriteOptions) -> WriteContext:
        return WriteContext(self.clock, self.store, self.randomness, options.user, options.dry_run)

    def _attributes(
        self,
        operation: Operation,
        row: Resource,
        namespace: str,
        options: WriteOptions,
        *,
        obj: Obj | None = None,
        old: Obj | None = None,
        name: str = "",
    ) -> Attributes:
        name = name or (meta(obj).get("name", "") if obj else "")
        return Attributes(
            operation, row, namespace, name, options.user, obj, old, "", options.dry_run, warnings=options.warnings
        )

    def _check(self, row: Resource, obj: Obj, old: Obj | None, strategy: Strategy) -> None:
        problems = names.metadata_errors(row, obj, old, strategy)
        if strategy.validate:
            problems += strategy.validate(obj)
        if old is None and strategy.validate_create:
            problems += strategy.validate_create(obj)
        if old is not None and strategy.validate_update:
            problems += strategy.validate_update(obj, old)
        self._refuse(row, meta(obj).get("name", ""), problems)

    @staticmethod
    def _refuse(row: Resource, name: str, problems: list[FieldError]) -> None:
        if problems:
            raise Invalid(row.group_kind, name, problems)

    def _own_fields(self, row: Resource, old: Obj | None, obj: Obj, options: WriteOptions, subresource: str) -> None:
        if options.operation == "Apply":
            return  # the apply itself has settled who owns what
        entries = update_managed_fields(
            old,
            obj,
            manager=options.field_manager,
            operation=options.operation,
            subresource=subresource,
            api_version=row.storage_version or row.api_version,
            time=self.clock.timestamp(),
            schema=self._storage_schema(row),
        )
        if entries:
            obj["metadata"]["managedFields"] = entries
        else:
            obj["metadata"].pop("managedFields", None)

    def _storage_schema(self, row: Resource) -> Schema:
        stored = self.resources.of_kind(row.storage_version, row.kind) if row.storage_version else row
        return self.schema(stored or row)


def _status_write(obj: Obj, old: Obj, *, annotations: bool) -> Obj:
    """A write through `status` changes the status and little else: what SSA records in metadata, and, of built-in
    kinds, annotations, which controllers keep their notes in."""
    result = {**old, "metadata": dict(meta(old))}
    for part in ("managedFields", "annotations") if annotations else ("managedFields",):
        if meta(obj).get(part):
            result["metadata"][part] = meta(obj)[part]
        else:
            result["metadata"].pop(part, None)
    _keep(result, obj, "status")
    return result


def _keep(obj: Obj, old: Obj, key: str) -> None:
    if key in old:
        obj[key] = old[key]
    else:
        obj.pop(key, None)


def _same(new: Obj, old: Obj) -> bool:
    """Whether two versions say the same, leaving out who said it when."""
    if any(new.get(key) != old.get(key) for key in {*new, *old} if key != "metadata"):
        return False
    mine, theirs = dict(meta(new)), dict(meta(old))
    for metadata in (mine, theirs):
        metadata.pop("managedFields", None)
        metadata.pop("resourceVersion", None)
    return mine == theirs


__all__ = ["ApiError", "Registry", "WriteOptions"]
