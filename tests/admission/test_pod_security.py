"""PodSecurity: every check in its own words, in the order of the real plug-in, and when it only warns."""

from __future__ import annotations

from typing import Any

import pytest

from .door import Door, container, pod

SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def safe(name: str = "c", **context: Any) -> dict[str, Any]:
    return container(name, securityContext={**SAFE, **context})


def with_context(name: str = "c", **context: Any) -> dict[str, Any]:
    return container(name, securityContext=context)


@pytest.mark.parametrize(
    ("made", "violation"),
    [
        (pod(hostNetwork=True, hostPID=True), "host namespaces (hostNetwork=true, hostPID=true)"),
        (
            pod("p", with_context("a", privileged=True), with_context("b", privileged=True)),
            'privileged (containers "a", "b" must not set securityContext.privileged=true)',
        ),
        (
            pod("p", with_context(capabilities={"add": ["SYS_TIME", "NET_ADMIN", "CHOWN"]})),
            'non-default capabilities (container "c" must not include "NET_ADMIN", "SYS_TIME" '
            "in securityContext.capabilities.add)",
        ),
        (
            pod(volumes=[{"name": "a", "hostPath": {"path": "/a"}}, {"name": "b", "hostPath": {"path": "/b"}}]),
            'hostPath volumes (volumes "a", "b")',
        ),
        (
            pod(
                "p", container("c", ports=[{"containerPort": 80, "hostPort": 9}, {"containerPort": 81, "hostPort": 10}])
            ),
            'hostPort (container "c" uses hostPorts 10, 9)',
        ),
        (
            pod("p", with_context(procMount="Unmasked"), hostUsers=False),
            'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            pod(
                "p",
                with_context(seccompProfile={"type": "Unconfined"}),
                securityContext={"seccompProfile": {"type": "Unconfined"}},
            ),
            'seccompProfile (pod and container "c" must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
        (
            pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            pod("p", with_context(seLinuxOptions={"type": "spc_t", "user": "u"})),
            'seLinuxOptions (container "c" set forbidden securityContext.seLinuxOptions: type "spc_t"; '
            "user may not be set)",
        ),
        (
            pod(securityContext={"appArmorProfile": {"type": "Unconfined"}}),
            'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
        ),
        (
            pod("p", container("c", livenessProbe={"httpGet": {"port": 80, "host": "10.0.0.1"}})),
            'probe or lifecycle host (container "c" uses probe or lifecycle host "10.0.0.1")',
        ),
    ],
)
def test_the_baseline_forbids(door: Door, made: dict[str, Any], violation: str) -> None:
    door.label("default", enforce="baseline")
    assert door.refuse("pods", made) == f'pods "p" is forbidden: violates PodSecurity "baseline:latest": {violation}'


@pytest.mark.parametrize(
    ("made", "violation"),
    [
        (
            pod(),
            'allowPrivilegeEscalation != false (container "c" must set '
            "securityContext.allowPrivilegeEscalation=false), "
            'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
            'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
            'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" '
            'or "Localhost")',
        ),
        (
            pod("p", safe(capabilities={"add": ["NET_RAW", "NET_BIND_SERVICE"]})),
            'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; '
            'container "c" must not include "NET_RAW" in securityContext.capabilities.add)',
        ),
        (
            pod(
                "p",
                safe(),
                volumes=[{"name": "a", "hostPath": {"path": "/a"}}, {"name": "b", "nfs": {"server": "n", "path": "/"}}],
            ),
            'restricted volume types (volumes "a", "b" use restricted volume types "hostPath", "nfs")',
        ),
        (
            pod("p", safe(runAsNonRoot=False), securityContext={"runAsNonRoot": False}),
            'runAsNonRoot != true (pod and container "c" must not set securityContext.runAsNonRoot=false)',
        ),
        (
            pod("p", safe("a", runAsUser=0), safe("b", runAsUser=0), securityContext={"runAsUser": 0}),
            'runAsUser=0 (pod and containers "a", "b" must not set runAsUser=0)',
        ),
        (
            pod("p", safe(privileged=True, allowPrivilegeEscalation=True), hostNetwork=True),
            'host namespaces (hostNetwork=true), privileged (container "c" must not set '
            'securityContext.privileged=true), allowPrivilegeEscalation != false (container "c" must set '
            "securityContext.allowPrivilegeEscalation=false)",
        ),
    ],
)
def test_the_restricted_level_forbids_too(door: Door, made: dict[str, Any], violation: str) -> None:
    door.label("default", enforce="restricted", enforce_version="v1.34")
    assert door.refuse("pods", made) == f'pods "p" is forbidden: violates PodSecurity "restricted:v1.34": {violation}'


def test_a_careful_pod_is_let_in(door: Door) -> None:
    door.label("default", enforce="restricted")
    door.let_in("pods", pod("p", safe(), volumes=[{"name": "v", "emptyDir": {}}]))
    assert door.warnings == []


def test_older_versions_of_the_standards_know_less(door: Door) -> None:
    door.label("default", enforce="baseline", enforce_version="v1.28")
    keepalive = {"sysctls": [{"name": "net.ipv4.tcp_keepalive_time", "value": "60"}]}
    assert door.refuse("pods", pod(securityContext=keepalive)).endswith(
        "forbidden sysctls (net.ipv4.tcp_keepalive_time)"
    )
    door.let_in("pods", pod("p", container("c", livenessProbe={"tcpSocket": {"port": 80, "host": "10.0.0.1"}})))


def deployment() -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container("c")], "hostPID": True}}
    return {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def test_workloads_are_warned_of_what_their_pods_will_meet(door: Door) -> None:
    door.label("default", enforce="baseline")
    door.let_in("deployments.apps", deployment())
    assert door.warnings == ['would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)']


def test_warnings_may_be_switched_off(door: Door) -> None:
    door.label("default", enforce="baseline", warn="privileged")
    door.let_in("deployments.apps", deployment())
    assert door.warnings == []


def test_labels_that_make_no_sense_are_refused(door: Door) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "strict", "pod-security.kubernetes.io/warn-version": "1.30"}
    assert door.refuse("namespaces", {"metadata": {"name": "odd", "labels": labels}}) == (
        'Namespace "odd" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": '
        "must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: "
        'Invalid value: "1.30": must be "latest" or "v1.x"]'
    )


def test_pods_that_would_not_be_let_in_again_are_named(door: Door) -> None:
    for name in ("b", "a", "c"):
        door.let_in("pods", pod(name, hostNetwork=True))
    door.let_in("pods", pod("z", container("c", ports=[{"containerPort": 1, "hostPort": 1}])))
    door.label("default", enforce="baseline")
    assert door.warnings == [
        'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 2 other pods): host namespaces",
        "z: hostPort",
    ]
