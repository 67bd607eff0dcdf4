"""Tables of who may do what and of what stands before the API: roles, certificates, admission, flow control."""

from __future__ import annotations

from typing import Final

from srearena.cluster.embedded.api.tables.columns import (
    AGE,
    DEFAULT,
    NAME,
    NONE,
    UNSET,
    Cell,
    Column,
    condition,
    count,
    count_at,
    items,
    mapping,
    number,
    number_at,
    printer,
    strings,
    text,
    text_at,
    wide,
)
from srearena.cluster.embedded.durations import human_duration
from srearena.cluster.embedded.objects import Obj, dig


def _role(obj: Obj, now: float) -> str:
    return f"{text(obj, 'roleRef', 'kind')}/{text(obj, 'roleRef', 'name')}"


def _subjects(kind: str) -> Cell:
    def cell(obj: Obj, now: float) -> str:
        return ", ".join(map(_subject, (s for s in items(obj, "subjects") if s.get("kind") == kind)))

    return cell


def _subject(subject: Obj) -> str:
    name = text(subject, "name")
    return f"{text(subject, 'namespace')}/{name}" if subject.get("kind") == "ServiceAccount" else name


BINDINGS: Final = printer(
    NAME,
    Column("Role", "string", "Role that is granted.", _role),
    AGE,
    wide("Users", "Users it is granted to.", _subjects("User")),
    wide("Groups", "Groups it is granted to.", _subjects("Group")),
    wide("ServiceAccounts", "Service accounts it is granted to.", _subjects("ServiceAccount")),
)


def _request_state(obj: Obj, now: float) -> str:
    condition_types = {text(entry, "type") for entry in items(obj, "status", "conditions")}
    states = ["Denied" if "Denied" in condition_types else "Approved" if "Approved" in condition_types else "Pending"]
    if "Failed" in condition_types:
        states.append("Failed")
    if dig(obj, "status", "certificate"):
        states.append("Issued")
    return ",".join(states)


def _requested_duration(obj: Obj, now: float) -> str:
    seconds = dig(obj, "spec", "expirationSeconds")
    return human_duration(seconds) if type(seconds) is int else NONE


_SIGNER: Final = Column("SignerName", "string", "Who signs.", text_at("spec", "signerName", missing=NONE))

CERTIFICATE_SIGNING_REQUESTS: Final = printer(
    NAME,
    AGE,
    _SIGNER,
    Column("Requestor", "string", "Who asks.", text_at("spec", "username")),
    Column("RequestedDuration", "string", "For how long.", _requested_duration),
    Column("Condition", "string", "What became of the request.", _request_state),
)

WEBHOOK_CONFIGURATIONS: Final = printer(
    NAME, Column("Webhooks", "integer", "Number of webhooks.", count_at("webhooks")), AGE
)


def _param_kind(obj: Obj, now: float) -> str:
    kind = mapping(obj, "spec", "paramKind")
    return f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}" if kind else UNSET


_PARAM_KIND: Final = Column("ParamKind", "string", "Kind of the policy's parameters.", _param_kind)
VALIDATING_POLICIES: Final = printer(
    NAME, Column("Validations", "integer", "Number of rules.", count_at("spec", "validations")), _PARAM_KIND, AGE
)
MUTATING_POLICIES: Final = printer(
    NAME, Column("Mutations", "integer", "Number of rules.", count_at("spec", "mutations")), _PARAM_KIND, AGE
)


def _param_ref(obj: Obj, now: float) -> str:
    reference = mapping(obj, "spec", "paramRef")
    if name := text(reference, "name"):
        return f"{text(reference, 'namespace', missing='*')}/{name}"
    selector = dig(reference, "selector")
    return _go_selector(selector) if isinstance(selector, dict) else UNSET


def _go_selector(selector: Obj) -> str:
    """A label selector as a Go program prints the struct, which is what the real column shows."""
    labels = "".join(f"{key}: {value}," for key, value in sorted(mapping(selector, "matchLabels").items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{text(entry, 'key')},Operator:{text(entry, 'operator')},"
        f"Values:[{' '.join(strings(entry, 'values'))}],}},"
        for entry in items(selector, "matchExpressions")
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


POLICY_BINDINGS: Final = printer(
    NAME,
    Column("PolicyName", "string", "Policy that is bound.", text_at("spec", "policyName")),
    Column("ParamRef", "string", "Where its parameters are.", _param_ref),
    AGE,
)


def _dangling(obj: Obj, now: float) -> str:
    found = condition(obj, "Dangling")
    return "?" if found is None else text(found, "status")


def _by_precedence(objects: list[Obj]) -> list[Obj]:
    return sorted(objects, key=lambda o: (number(o, "spec", "matchingPrecedence"), text(o, "metadata", "name")))


FLOW_SCHEMAS: Final = printer(
    NAME,
    Column("PriorityLevel", "string", "Level of its requests.", text_at("spec", "priorityLevelConfiguration", "name")),
    Column("MatchingPrecedence", "string", "Lower is asked first.", number_at("spec", "matchingPrecedence")),
    Column(
        "DistinguisherMethod",
        "string",
        "What tells its flows apart.",
        text_at("spec", "distinguisherMethod", "type", missing=NONE),
    ),
    AGE,
    Column("MissingPL", "string", "Whether its level does not exist.", _dangling),
    order=_by_precedence,
)


def _limited(*path: str) -> Cell:
    def cell(obj: Obj, now: float) -> int | str:
        value = dig(obj, "spec", "limited", *path)
        return value if type(value) is int else NONE

    return cell


_QUEUING: Final = ("limitResponse", "queuing")
PRIORITY_LEVELS: Final = printer(
    NAME,
    Column("Type", "string", "Exempt or Limited.", text_at("spec", "type")),
    Column("NominalConcurrencyShares", "string", "Its part of the seats.", _limited("nominalConcurrencyShares")),
    Column("Queues", "string", "Number of queues.", _limited(*_QUEUING, "queues")),
    Column("HandSize", "string", "Queues one flow may use.", _limited(*_QUEUING, "handSize")),
    Column("QueueLengthLimit", "string", "Longest queue.", _limited(*_QUEUING, "queueLengthLimit")),
    AGE,
)


def _service(obj: Obj, now: float) -> str:
    service = dig(obj, "spec", "service")
    return f"{text(service, 'namespace')}/{text(service, 'name')}" if isinstance(service, dict) else "Local"


def _available(obj: Obj, now: float) -> str:
    found = condition(obj, "Available")
    if found is None:
        return "Unknown"
    status, reason = text(found, "status"), text(found, "reason")
    return f"{status} ({reason})" if status != "True" and reason else status


API_SERVICES: Final = printer(
    NAME,
    Column("Service", "string", "Who serves the API.", _service),
    Column("Available", "string", "Whether it answers.", _available),
    AGE,
)


def _server_versions(obj: Obj, now: float) -> str:
    versions = [
        f"{text(v, 'apiServerID')}={text(v, 'encodingVersion')}" for v in items(obj, "status", "storageVersions")
    ]
    left_out = count(obj, "status", "storageVersions") - 3
    line = ",".join(versions[:3])
    return f"{line} + {left_out} more..." if left_out > 0 else line or UNSET


STORAGE_VERSIONS: Final = printer(
    NAME,
    Column(
        "CommonEncodingVersion",
        "string",
        "Version all servers store.",
        text_at("status", "commonEncodingVersion", missing=UNSET),
    ),
    Column("StorageVersions", "string", "Version each server stores.", _server_versions),
    AGE,
)

PRINTERS: Final = {
    ("", "limitranges"): DEFAULT,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): MUTATING_POLICIES,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): POLICY_BINDINGS,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): WEBHOOK_CONFIGURATIONS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): VALIDATING_POLICIES,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): POLICY_BINDINGS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): WEBHOOK_CONFIGURATIONS,
    ("apiextensions.k8s.io", "customresourcedefinitions"): DEFAULT,
    ("apiregistration.k8s.io", "apiservices"): API_SERVICES,
    ("certificates.k8s.io", "certificatesigningrequests"): CERTIFICATE_SIGNING_REQUESTS,
    ("certificates.k8s.io", "clustertrustbundles"): printer(NAME, _SIGNER),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): FLOW_SCHEMAS,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): PRIORITY_LEVELS,
    ("internal.apiserver.k8s.io", "storageversions"): STORAGE_VERSIONS,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): BINDINGS,
    ("rbac.authorization.k8s.io", "clusterroles"): DEFAULT,
    ("rbac.authorization.k8s.io", "rolebindings"): BINDINGS,
    ("rbac.authorization.k8s.io", "roles"): DEFAULT,
}
