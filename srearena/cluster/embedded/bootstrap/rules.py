"""RBAC rules written short: `rule("core", "pods services", READ)`, `paths("/healthz")`.

The core group, whose name is empty, is written `core`.
"""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
EVERY_VERB = "create delete deletecollection get list patch update watch"


def rule(groups: str, resources: str, verbs: str, *, names: str = "") -> Obj:
    found: Obj = {
        "apiGroups": [group if group != "core" else "" for group in groups.split()],
        "resources": resources.split(),
        "verbs": verbs.split(),
    }
    if names:
        found["resourceNames"] = names.split()
    return found


def paths(urls: str, verbs: str = "get") -> Obj:
    return {"nonResourceURLs": urls.split(), "verbs": verbs.split()}


EVENTS = rule("core events.k8s.io", "events", "create patch update")
"""The rules for recording events."""
