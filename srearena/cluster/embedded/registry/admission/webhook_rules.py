"""Which webhooks a write concerns: rules, selectors and scope of webhook configurations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from srearena.cluster.embedded.objects import Obj, labels_of, name_of
from srearena.cluster.embedded.registry.admission.chain import Attributes
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.store import Store

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"
_EXEMPT_GROUP = "admissionregistration.k8s.io"


@dataclass(slots=True, frozen=True)
class Webhook:
    """One webhook of a configuration."""

    configuration: str
    hook: Obj

    @property
    def name(self) -> str:
        return str(self.hook.get("name", ""))

    @property
    def timeout(self) -> int:
        return int(self.hook.get("timeoutSeconds") or 10)

    @property
    def ignores_failure(self) -> bool:
        return self.hook.get("failurePolicy") == "Ignore"

    @property
    def url(self) -> str:
        """Where it is called, as error messages show it."""
        client = self.hook.get("clientConfig") or {}
        service = client.get("service")
        if service is None:
            base = str(client.get("url", ""))
        else:
            path = str(service.get("path") or "/")
            base = f"https://{service.get('name')}.{service.get('namespace')}.svc:{service.get('port') or 443}{path}"
        return f"{base}?timeout={self.timeout}s"


def matching(store: Store, resource: str, attributes: Attributes) -> Iterator[Webhook]:
    """The webhooks of all configurations that want to see the write, in the order in which they are called."""
    if attributes.row.group == _EXEMPT_GROUP:
        return
    for configuration in store.objects(resource):
        for hook in configuration.get("webhooks") or ():
            if _wants(store, hook, attributes):
                yield Webhook(name_of(configuration), hook)


def selected(store: Store, constraints: Obj, attributes: Attributes, *, ruled: bool = True) -> bool:
    """Whether a policy's matchConstraints, or a binding's matchResources, select a write.

    Not `ruled`, constraints without resource rules select every resource.
    """
    if any(_named_rule_matches(rule, attributes) for rule in constraints.get("excludeResourceRules") or ()):
        return False
    rules = constraints.get("resourceRules") or ()
    if (rules or ruled) and not any(_named_rule_matches(rule, attributes) for rule in rules):
        return False
    return _namespace_selected(store, constraints, attributes) and _object_selected(constraints, attributes)


def _named_rule_matches(rule: Obj, attributes: Attributes) -> bool:
    names = rule.get("resourceNames")
    return _rule_matches(rule, attributes) and (not names or attributes.name in names)


def _wants(store: Store, hook: Obj, attributes: Attributes) -> bool:
    if not any(_rule_matches(rule, attributes) for rule in hook.get("rules") or ()):
        return False
    return _namespace_selected(store, hook, attributes) and _object_selected(hook, attributes)


def _rule_matches(rule: Obj, attributes: Attributes) -> bool:
    row = attributes.row
    if not _listed(rule.get("operations"), attributes.operation):
        return False
    if not _listed(rule.get("apiGroups"), row.group) or not _listed(rule.get("apiVersions"), row.version):
        return False
    scope = rule.get("scope") or "*"
    if scope != "*" and (scope == "Namespaced") != row.namespaced:
        return False
    return any(_resource_matches(str(name), row.plural, attributes.subresource) for name in rule.get("resources") or ())


def _listed(values: list[str] | None, value: str) -> bool:
    return any(entry in ("*", value) for entry in values or ())


def _resource_matches(pattern: str, plural: str, subresource: str) -> bool:
    resource, slash, sub = pattern.partition("/")
    if resource not in ("*", plural):
        return False
    return sub in ("*", subresource) if slash else not subresource


def _namespace_selected(store: Store, hook: Obj, attributes: Attributes) -> bool:
    selector = hook.get("namespaceSelector")
    if not selector:
        return True
    if attributes.row.group_resource == "namespaces":
        labels = labels_of(attributes.obj or attributes.old or {})
    elif not attributes.row.namespaced:
        return True
    else:
        labels = labels_of(store.get("namespaces", "", attributes.namespace) or {})
    return label_selector_of(selector).matches(labels)


def _object_selected(hook: Obj, attributes: Attributes) -> bool:
    selector = hook.get("objectSelector")
    if not selector:
        return True
    matcher = label_selector_of(selector)
    return any(obj is not None and matcher.matches(labels_of(obj)) for obj in (attributes.obj, attributes.old))
