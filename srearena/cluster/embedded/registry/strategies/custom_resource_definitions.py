"""CustomResourceDefinitions: names, versions, schemas and how versions convert."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj, annotations_of, name_of
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.go_shapes import shape_of
from srearena.cluster.embedded.registry.strategies.parts import fill, items, part
from srearena.cluster.embedded.registry.strategies.structural_schemas import check_schema
from srearena.cluster.embedded.registry.strategies.webhook_clients import check_client, check_review_versions
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
APPROVED = "api-approved.kubernetes.io"
_NEEDS_APPROVAL = f'protected groups must have approval annotation "{APPROVED}"'
_APPROVAL_RULES = "see https://github.com/kubernetes/enhancements/pull/1111"
_PER_VERSION = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("binary", "bool", "byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def _default(obj: Obj) -> None:
    spec = part(obj, "spec")
    named = part(spec, "names")
    kind = named.get("kind") or ""
    if not named.get("singular") and kind:
        named["singular"] = kind.lower()
    if not named.get("listKind") and kind:
        named["listKind"] = f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    service = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        fill(service, {"port": 443})
    status = part(obj, "status")
    status.setdefault("conditions", None)
    fill(part(status, "acceptedNames"), {"plural": "", "kind": ""})
    if not status.get("storedVersions"):
        status["storedVersions"] = [v.get("name", "") for v in items(spec, "versions") if v.get("storage")][:1]


def _prepare_update(new: Obj, old: Obj, context: WriteContext) -> None:
    """A version that becomes the storage version is remembered as one that objects are stored in."""
    status = new.get("status") or {}
    stored = items(status, "storedVersions")
    storage = next((v.get("name") for v in items(new["spec"], "versions") if v.get("storage")), None)
    if storage and storage not in stored:
        new["status"] = {**status, "storedVersions": [*stored, storage]}


def _validate(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    named, group, versions = spec.get("names") or {}, spec.get("group") or "", items(spec, "versions")
    if name_of(obj) and name_of(obj) != f"{named.get('plural') or ''}.{group}":
        text = 'must be spec.names.plural+"."+spec.group'
        problems.append(FieldError.invalid("metadata.name", name_of(obj), text))
    _group(problems, group)
    checks.required_one_of(problems, "spec.scope", spec.get("scope"), ("Cluster", "Namespaced"))
    for index, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            problems.append(FieldError.required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    columns = None if spec.get("versions") is None else _versions_as_go(versions)
    _versions(problems, versions, columns)
    if versions:
        _label(problems, "spec.version", versions[0].get("name") or "")
    for key in ("plural", "singular", "kind", "listKind"):
        checks.required(problems, f"spec.names.{key}", named.get(key))
    _names(problems, named)
    _shared(problems, versions)
    _conversion(problems, spec.get("conversion") or {})
    _approval(problems, group, annotations_of(obj))
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        problems.append(FieldError.invalid("spec.preserveUnknownFields", True, text))
    stored = items(obj.get("status"), "storedVersions")
    if not stored:
        problems.append(FieldError.invalid("status.storedVersions", None, "must have at least one stored version"))
    for version in versions:
        if stored and version.get("storage") and version.get("name") not in stored:
            text = f"must have the storage version {version.get('name')}"
            problems.append(FieldError.invalid("status.storedVersions", stored, text))
    return problems


def _group(problems: Problems, group: str) -> None:
    if not checks.required(problems, "spec.group", group):
        return
    wrong = names.subdomain_errors(group)
    if wrong:
        problems.append(FieldError.invalid("spec.group", group, ",".join(wrong)))
    elif "." not in group:
        problems.append(FieldError.invalid("spec.group", group, "should be a domain with at least one dot"))


def _versions(problems: Problems, versions: list[Obj], columns: list[Obj] | None) -> None:
    for index, version in enumerate(versions):
        name = version.get("name") or ""
        wrong = names.label_1035_errors(name)
        if wrong:
            problems.append(FieldError.invalid(f"spec.versions[{index}].name", name, ",".join(wrong)))
        if version.get("deprecationWarning") is not None and not version.get("deprecated"):
            text = "can only be set for deprecated versions"
            where = f"spec.versions[{index}].deprecationWarning"
            problems.append(FieldError.invalid(where, version["deprecationWarning"], text))
        if not _is_shared(versions, "schema"):
            _schema(problems, f"spec.versions[{index}].schema", version)
        if not _is_shared(versions, "subresources"):
            _subresources(problems, f"spec.versions[{index}].subresources", version)
        if not _is_shared(versions, "additionalPrinterColumns"):
            _columns(problems, f"spec.versions[{index}].additionalPrinterColumns", version)
    if len({version.get("name") for version in versions}) < len(versions):
        problems.append(FieldError.invalid("spec.versions", columns, "must contain unique version names"))
    if sum(1 for version in versions if version.get("storage")) != 1:
        text = "must have exactly one version marked as storage version"
        problems.append(FieldError.invalid("spec.versions", columns, text))


def _versions_as_go(versions: list[Obj]) -> list[Obj]:
    """The versions without what all of them share, which the server keeps in one place."""
    shared = [key for key in _PER_VERSION if _is_shared(versions, key)]
    own = [{key: value for key, value in version.items() if key not in shared} for version in versions]
    return [shape_of("CustomResourceDefinitionVersion", version) for version in own]


def _is_shared(versions: list[Obj], key: str) -> bool:
    """Whether all versions say the same, which the server then keeps, and reports, in one place for all."""
    first: Any = versions[0].get(key) if versions else None
    return all(version.get(key) == first for version in versions)


def _shared(problems: Problems, versions: list[Obj]) -> None:
    if not versions:
        return
    if _is_shared(versions, "schema"):
        _schema(problems, "spec.validation", versions[0])
    if _is_shared(versions, "subresources"):
        _subresources(problems, "spec.subresources", versions[0])
    if _is_shared(versions, "additionalPrinterColumns"):
        _columns(problems, "spec.additionalPrinterColumns", versions[0])


def _schema(problems: Problems, path: str, version: Obj) -> None:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is not None:
        check_schema(problems, f"{path}.openAPIV3Schema", schema)


def _subresources(problems: Problems, path: str, version: Obj) -> None:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for key, roots in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        where, value = f"{path}.scale.{key}", scale.get(key) or ""
        if not value:
            if key != "labelSelectorPath":
                problems.append(FieldError.required(where))
        elif not value.startswith("."):
            problems.append(FieldError.invalid(where, value, "must be a simple json path starting with ."))
        elif not value.startswith(roots):
            allowed = " or ".join(root.rstrip(".") for root in roots)
            text = f"should be a json path under {'either ' if len(roots) > 1 else ''}{allowed}"
            problems.append(FieldError.invalid(where, value, text))


def _columns(problems: Problems, path: str, version: Obj) -> None:
    for index, column in enumerate(items(version, "additionalPrinterColumns")):
        where = f"{path}[{index}]"
        checks.required(problems, f"{where}.name", column.get("name"))
        kind, form = column.get("type") or "", column.get("format") or ""
        text = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not kind:
            problems.append(FieldError.required(f"{where}.type", text))
        elif kind not in _COLUMN_TYPES:
            problems.append(FieldError.invalid(f"{where}.type", kind, text))
        if form and form not in _COLUMN_FORMATS:
            text = f"must be one of {','.join(_COLUMN_FORMATS)}"
            problems.append(FieldError.invalid(f"{where}.format", form, text))
        expression = column.get("jsonPath") or ""
        if not expression:
            problems.append(FieldError.required(f"{where}.JSONPath"))
        elif not expression.startswith("."):
            text = "must be a simple json path starting with ."
            problems.append(FieldError.invalid(f"{where}.JSONPath", expression, text))


def _names(problems: Problems, named: Obj) -> None:
    for key in ("plural", "singular"):
        _label(problems, f"spec.names.{key}", named.get(key) or "")
    for key in ("kind", "listKind"):
        value = named.get(key) or ""
        wrong = names.label_1035_errors(value.lower()) if value else []
        if wrong:
            text = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
            problems.append(FieldError.invalid(f"spec.names.{key}", value, text))
    for index, value in enumerate(items(named, "shortNames")):
        _label(problems, f"spec.names.shortNames[{index}]", value)
    if named.get("kind") and named.get("kind") == named.get("listKind"):
        text = "kind and listKind may not be the same"
        problems.append(FieldError.invalid("spec.names.listKind", named["listKind"], text))
    for index, value in enumerate(items(named, "categories")):
        _label(problems, f"spec.names.categories[{index}]", value)


def _label(problems: Problems, path: str, value: str) -> None:
    wrong = names.label_1035_errors(value) if value else []
    if wrong:
        problems.append(FieldError.invalid(path, value, ",".join(wrong)))


def _conversion(problems: Problems, conversion: Obj) -> None:
    path, webhook = "spec.conversion", conversion.get("webhook")
    checks.required_one_of(problems, f"{path}.strategy", conversion.get("strategy"), ("None", "Webhook"))
    if conversion.get("strategy") == "Webhook":
        client = (webhook or {}).get("clientConfig")
        if client is None:
            text = "required when strategy is set to Webhook"
            problems.append(FieldError.required(f"{path}.webhookClientConfig", text))
        else:
            check_client(problems, f"{path}.webhookClientConfig", client)
        versions = items(webhook, "conversionReviewVersions")
        check_review_versions(problems, f"{path}.conversionReviewVersions", versions, missing="")
    elif webhook is not None:
        text = "should not be set when strategy is not set to Webhook"
        for key, columns in (
            ("clientConfig", "webhookClientConfig"),
            ("conversionReviewVersions", "conversionReviewVersions"),
        ):
            if webhook.get(key):
                problems.append(FieldError.forbidden(f"{path}.{columns}", text))


def _approval(problems: Problems, group: str, annotations: dict[str, str]) -> None:
    """Groups of the Kubernetes community need the community's approval."""
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return
    where, value = f"metadata.annotations[{APPROVED}]", annotations.get(APPROVED) or ""
    if not value:
        problems.append(FieldError.required(where, f"{_NEEDS_APPROVAL}, {_APPROVAL_RULES}"))
    elif not value.startswith(("unapproved", "http://", "https://")):
        text = f'{_NEEDS_APPROVAL} with either a URL or a reason starting with "unapproved", {_APPROVAL_RULES}'
        problems.append(FieldError.invalid(where, value, text))


def _validate_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    named, was = spec.get("names") or {}, before.get("names") or {}
    conditions = (old.get("status") or {}).get("conditions") or ()
    if any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions):
        checks.immutable(problems, "spec.scope", spec.get("scope"), before.get("scope"))
        checks.immutable(problems, "spec.names.kind", named.get("kind"), was.get("kind"))
    checks.immutable(problems, "spec.group", spec.get("group") or "", before.get("group") or "")
    checks.immutable(problems, "spec.names.plural", named.get("plural") or "", was.get("plural") or "")
    present = [version.get("name") for version in items(spec, "versions")]
    for index, name in enumerate(items(new.get("status"), "storedVersions")):
        if name not in present:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            problems.append(FieldError.invalid(f"status.storedVersions[{index}]", name, text))
    return problems


STRATEGIES = {
    "customresourcedefinitions.apiextensions.k8s.io": Strategy(
        default=_default,
        prepare_update=_prepare_update,
        validate=_validate,
        validate_update=_validate_update,
        deletion_finalizers=(CLEANUP,),
    ),
}
