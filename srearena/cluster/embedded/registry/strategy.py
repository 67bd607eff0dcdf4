"""What is particular to one resource on the write path, as a record of small functions.

A resource without a strategy of its own is handled by the generic rules alone. Strategies live in
`registry.strategies`, one module per API group, each with a `STRATEGIES` table; adding one is adding a row there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.randomness import Randomness
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.store import Store


@dataclass(slots=True, frozen=True)
class WriteContext:
    """What a strategy may look at beside the object itself."""

    clock: Clock
    store: Store
    randomness: Randomness
    user: User
    dry_run: bool = False


@dataclass(slots=True, frozen=True)
class Strategy:
    """Hooks get a dict of their own and change it in place; `old` is the stored object and is not touched."""

    default: Callable[[Obj], None] | None = None
    """Fill in what the server fills in when it decodes the object."""
    prepare_create: Callable[[Obj, WriteContext], None] | None = None
    prepare_update: Callable[[Obj, Obj, WriteContext], None] | None = None
    """(new, old): put back what this endpoint may not change, allocate what the object asks for."""
    validate: Callable[[Obj], list[FieldError]] | None = None
    validate_create: Callable[[Obj], list[FieldError]] | None = None
    """What holds only for new objects; `validate` runs too."""
    validate_update: Callable[[Obj, Obj], list[FieldError]] | None = None
    """(new, old): what holds between two versions, above all immutable fields; `validate` runs too."""
    prepare_status: Callable[[Obj, Obj, WriteContext], None] | None = None
    """(new, old) for writes through the status subresource, instead of defaults and preparation: only the status may
    be touched, the rest of `new` is the stored object's own."""
    validate_status: Callable[[Obj, Obj], list[FieldError]] | None = None
    """(new, old) for writes through the status subresource, instead of the two above."""
    warnings: Callable[[Obj], list[str]] | None = None
    """What the server says in Warning headers without refusing (deprecated fields, duplicate names ...)."""
    name_errors: Callable[[str, bool], list[str]] | None = None
    """(name, is_prefix): what is wrong with it; names are DNS subdomains where this is absent."""
    forget: Callable[[Obj, WriteContext], None] | None = None
    """The object is gone: release what was allocated for it."""
    grace_seconds: Callable[[Obj, Obj, WriteContext], int] | None = None
    """(object, DeleteOptions): how long a deletion lingers for its owner to finish; 0 where it does not."""
    deletion_finalizers: tuple[str, ...] = ()
    """What holds an object of this kind from the moment it is deleted, until a controller has cleaned up after it."""
    defaults_when_read: bool = False
    """Whether what creation prepares gives the defaults more to fill in when the object is read from storage."""
    keeps_status_on_create: bool = False
    conditional_update_only: bool = False
    """Whether an update without resourceVersion is refused."""
    subresources: Mapping[str, Strategy] = field(default_factory=dict)
    """Strategies that replace this one for writes through another subresource, where other rules hold there."""
