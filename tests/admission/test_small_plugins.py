"""The plug-ins that complete pods, and what they refuse: accounts, priorities, runtimes, namespaces, claims."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.admission.webhook_rules import Webhook
from srearena.cluster.embedded.registry.admission.webhooks import Answer

from .door import Door, container, pod

PRIORITIES = "priorityclasses.scheduling.k8s.io"


def test_an_account_that_is_missing(door: Door) -> None:
    assert door.refuse("pods", pod(serviceAccountName="robot")) == (
        'pods "p" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found'
    )


def test_a_name_to_be_generated_is_named_by_its_start(door: Door) -> None:
    unnamed = {**pod(serviceAccountName="robot"), "metadata": {"generateName": "web-"}}
    assert door.refuse("pods", unnamed).startswith('pods "web-" is forbidden: error looking up service account ')


def test_every_container_finds_the_token_of_its_account(door: Door) -> None:
    admitted = door.let_in("pods", pod("p", container("c"), initContainers=[container("i")]))
    (volume,) = admitted["spec"]["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    for each in (*admitted["spec"]["containers"], *admitted["spec"]["initContainers"]):
        assert each["volumeMounts"] == [
            {"name": volume["name"], "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        ]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        (
            {"priorityClassName": "high", "priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; "
            "priority admission controller computed 1000 from the given PriorityClass name",
        ),
        (
            {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
            "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; "
            "priority admission controller computed Never from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
    ],
)
def test_a_priority_is_computed_not_chosen(door: Door, spec: dict[str, Any], problem: str) -> None:
    door.let_in(PRIORITIES, {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
    assert door.refuse("pods", pod(**spec)) == f'pods "p" is forbidden: {problem}'


def test_there_is_one_default_priority(door: Door) -> None:
    door.let_in(PRIORITIES, {"metadata": {"name": "usual"}, "value": 10, "globalDefault": True})
    assert door.refuse(PRIORITIES, {"metadata": {"name": "other"}, "value": 20, "globalDefault": True}) == (
        'priorityclasses.scheduling.k8s.io "other" is forbidden: '
        "PriorityClass usual is already marked as default. Only one default can exist"
    )
    spec = door.let_in("pods", pod())["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (10, "usual")


def test_sick_nodes_are_tolerated_for_five_minutes(door: Door) -> None:
    own = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    admitted = door.let_in("pods", pod(tolerations=[own]))
    assert admitted["spec"]["tolerations"] == [
        own,
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    ]


def test_a_runtime_class_brings_its_costs_and_its_place(door: Door) -> None:
    assert door.refuse("pods", pod(runtimeClassName="vm")) == (
        'pods "p" is forbidden: pod rejected: RuntimeClass "vm" not found'
    )
    door.let_in(
        "runtimeclasses.node.k8s.io",
        {
            "metadata": {"name": "vm"},
            "handler": "kata",
            "overhead": {"podFixed": {"memory": "128Mi"}},
            "scheduling": {"nodeSelector": {"vm": "yes"}},
        },
    )
    admitted = door.let_in("pods", pod(runtimeClassName="vm"))
    assert (admitted["spec"]["overhead"], admitted["spec"]["nodeSelector"]) == ({"memory": "128Mi"}, {"vm": "yes"})
    assert door.refuse("pods", pod("q", overhead={"memory": "1Mi"})) == (
        'pods "q" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead'
    )
    assert door.refuse("pods", pod("q", runtimeClassName="vm", nodeSelector={"vm": "no"})) == (
        'pods "q" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; '
        "pod.spec.nodeSelector[vm] = no"
    )


def test_nothing_is_made_in_a_namespace_that_is_missing_or_going(door: Door) -> None:
    elsewhere = {**pod(), "metadata": {"name": "p", "namespace": "lost"}}
    assert door.refuse("pods", elsewhere) == 'namespaces "lost" not found'
    admitted = door.let_in("namespaces", {"metadata": {"name": "old", "finalizers": ["example.com/keep"]}})
    door.world.client(door._options().user, "test").delete("namespaces", admitted)
    assert door.refuse("configmaps", {"metadata": {"name": "c", "namespace": "old"}}) == (
        'configmaps "c" is forbidden: unable to create new content in namespace old because it is being terminated'
    )


class Replies:
    """Plays the webhook: answers at once with a response of its own making."""

    def __init__(self, door: Door, response: dict[str, Any] | None, failure: str = "") -> None:
        self._door = door
        self._response = response
        self._failure = failure

    def call(self, webhook: Webhook, review: Obj) -> Signal[Answer]:
        reply: Signal[Answer] = Signal(self._door.world.clock)
        answer: Obj = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
        if self._response is not None:
            answer["response"] = {"uid": review["request"]["uid"], **self._response}
        reply.set(Answer(failure=self._failure) if self._failure else Answer(answer))
        return reply


@pytest.mark.parametrize(
    ("response", "failure", "problem"),
    [
        ({"allowed": False}, "", 'admission webhook "look.example.com" denied the request without explanation'),
        (
            {"allowed": False, "status": {"message": "no"}},
            "",
            'admission webhook "look.example.com" denied the request: no',
        ),
        (
            None,
            'Post "https://hook.default.svc:443/?timeout=10s": context deadline exceeded',
            'Internal error occurred: failed calling webhook "look.example.com": failed to call webhook: '
            'Post "https://hook.default.svc:443/?timeout=10s": context deadline exceeded',
        ),
        (
            None,
            "",
            'Internal error occurred: failed calling webhook "look.example.com": received invalid webhook response: '
            "webhook response was absent",
        ),
        (
            {"allowed": True, "patch": "W10="},
            "",
            'Internal error occurred: failed calling webhook "look.example.com": received invalid webhook response: '
            "validating webhook may not return response.patch",
        ),
    ],
)
def test_webhooks_refuse_or_fail(door: Door, response: dict[str, Any] | None, failure: str, problem: str) -> None:
    door.let_in(
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        {
            "metadata": {"name": "look"},
            "webhooks": [
                {
                    "name": "look.example.com",
                    "clientConfig": {"service": {"name": "hook", "namespace": "default"}},
                    "rules": [
                        {
                            "operations": ["CREATE"],
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["configmaps"],
                        }
                    ],
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        },
    )
    door.webhooks.caller = Replies(door, response, failure)
    assert door.refuse("configmaps", {"metadata": {"name": "c"}}) == problem
