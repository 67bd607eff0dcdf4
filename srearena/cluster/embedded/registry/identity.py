"""Who is asking: the user of a request, as authentication found it or as a component of the cluster carries it."""

from __future__ import annotations

from dataclasses import dataclass, field

AUTHENTICATED = "system:authenticated"
SUPERUSERS = "system:masters"


@dataclass(slots=True, frozen=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def info(self) -> dict[str, object]:
        """UserInfo, as reviews and admission requests carry it."""
        found: dict[str, object] = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            found["uid"] = self.uid
        if self.extra:
            found["extra"] = {key: list(values) for key, values in self.extra.items()}
        return found


def service_account(namespace: str, name: str, uid: str = "", extra: dict[str, tuple[str, ...]] | None = None) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid, extra or {})


def node_user(name: str) -> User:
    return User(f"system:node:{name}", ("system:nodes", AUTHENTICATED))


def component(name: str) -> User:
    """One of the control plane's own programs, such as `kube-scheduler`."""
    return User(f"system:{name}", (AUTHENTICATED,))
