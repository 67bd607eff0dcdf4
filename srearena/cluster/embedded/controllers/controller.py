"""The base of all controllers: a work queue of keys, and back-off after failures.

A controller declares which objects it watches (`watch`), maps each to a key, and implements `reconcile` for a key.
A key is reconciled shortly after a change, once for several changes; after a failure it is retried with back-off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from srearena.cluster.embedded.clock import Timer
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, controller_of, key_of, namespace_of
from srearena.cluster.embedded.recorder import Recorder
from srearena.cluster.embedded.registry.admission.chain import AdmissionPending
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.identity import service_account
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import CONTROLLER_MANAGER, World

REACTION_SECONDS = 0.01
"""How long after a change a controller acts: informer latency plus the queue, in a quiet cluster."""
_RETRY_FIRST = 0.005
_RETRY_LAST = 1000.0

KeysOf = Callable[[Obj], Iterable[str]]


class Controller(ABC):
    """Derive, set `name`, call `watch` in `start`, implement `reconcile`."""

    name = ""
    """As the service account is called: `deployment-controller`."""
    source = ""
    """As the events' source is called, where that is something else."""
    failure = ("", "")
    """Where the real controller logs that it failed and tries again, and its text with {key} and {problem}."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.clock
        self.store = world.store
        self.client = world.controller_client(self.name)
        user = service_account("kube-system", self.name)
        self.recorder = Recorder(world, self.source or self.name, user, field_manager=CONTROLLER_MANAGER)
        self.added = self.retried = 0
        """Counters: keys queued, and retries after failures."""
        self.watched: dict[str, float] = {}
        """Resources it has an informer of, and since when."""
        self._planned: dict[str, Timer] = {}
        self._failures: dict[str, int] = {}

    @abstractmethod
    def start(self) -> None:
        """Register watches; existing objects are reconciled once."""

    def reconcile(self, key: str) -> None:  # noqa: B027 - one that only goes by the clock has no keys
        """Compare desired and actual state of an object, and take one step to converge."""

    def watch(self, resource: str, keys: KeysOf | None = None) -> None:
        """Queue the keys of an object (by default its own) whenever it changes."""
        keys_of = keys or (lambda obj: (key_of(obj),))
        self.watched.setdefault(resource, self.clock.now)

        def on_change(change: Change) -> None:
            for key in keys_of(change.new):
                self.enqueue(key)
            if change.old is not None and keys is not None:
                for key in keys_of(change.old):
                    self.enqueue(key)

        self.world.on_change(resource, on_change)
        for obj in self.store.objects(resource):
            for key in keys_of(obj):
                self.enqueue(key)

    def watch_owned(self, resource: str, owner_kind: str) -> None:
        """Queue the controller of an object whenever the object changes."""
        self.watch(resource, lambda obj: owner_keys(obj, owner_kind))

    def enqueue(self, key: str, delay: float = REACTION_SECONDS) -> None:
        """Queue a key after `delay` virtual seconds, or earlier if it is already scheduled."""
        planned = self._planned.get(key)
        if planned is not None and planned.pending:
            if planned.when <= self.clock.now + delay:
                return
            planned.cancel()
        self.added += 1
        self._planned[key] = self.clock.after(delay, self._look, key)

    def depth(self) -> int:
        """Return the number of keys that are ready for a worker; those that wait for a delay are not."""
        soon = self.clock.now + REACTION_SECONDS
        return sum(timer.when <= soon for timer in self._planned.values()) if self._planned else 0

    def _look(self, key: str) -> None:
        self._planned.pop(key, None)
        try:
            self.reconcile(key)
        except AdmissionPending as pending:
            pending.ready.then(lambda: self.enqueue(key, 0))
            return
        except ApiError as problem:
            self._log_failure(key, problem)
            self.retried += 1
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self.enqueue(key, min(_RETRY_FIRST * 2 ** min(failures - 1, 20), _RETRY_LAST))
            return
        self._failures.pop(key, None)

    def log(self, severity: str, place: str, text: str) -> None:
        """Log a line in the controller manager's log."""
        self.world.component_logs.write(CONTROLLER_MANAGER, severity, place, text)

    def _log_failure(self, key: str, problem: ApiError) -> None:
        place, text = self.failure
        if place:
            error = quoted(text.format(key=key, problem=problem.message))
            self.log("E", place, f'"Unhandled Error" err={error} logger="UnhandledError"')


def owner_keys(obj: Obj, owner_kind: str) -> tuple[str, ...]:
    """The key of the controller of an object, if that is of the given kind."""
    owner = controller_of(obj)
    if owner is None or owner["kind"] != owner_kind:
        return ()
    namespace = namespace_of(obj)
    return (f"{namespace}/{owner['name']}" if namespace else owner["name"],)


def split_key(key: str) -> tuple[str, str]:
    """`namespace/name` as a pair; the namespace is empty for objects without one."""
    namespace, _, name = key.rpartition("/")
    return namespace, name
