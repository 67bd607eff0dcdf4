"""ResourceQuota: what must be stated, what is exceeded, and what is not known yet."""

from __future__ import annotations

from .door import Door, container, pod


def test_what_a_quota_limits_must_be_stated_by_every_container(door: Door) -> None:
    door.quota("compute", hard={"limits.cpu": "2", "requests.memory": "1Gi", "requests.ephemeral-storage": "1Gi"})
    refused = door.refuse(
        "pods", pod("p", container("b"), container("a", {"memory": "1Mi"}), initContainers=[container("i")])
    )
    assert refused == (
        'pods "p" is forbidden: failed quota: compute: must specify limits.cpu for: a,b,i; requests.memory for: b,i'
    )


def test_a_pod_that_speaks_for_itself_needs_no_words_of_its_containers(door: Door) -> None:
    door.quota("compute", hard={"requests.cpu": "2"})
    admitted = door.let_in("pods", pod("p", container("c"), resources={"requests": {"cpu": "1"}}))
    assert admitted["metadata"]["uid"]


def test_only_what_is_exceeded_is_listed_in_order(door: Door) -> None:
    door.quota("small", {"pods": "3", "requests.cpu": "900m"}, hard={"pods": "3", "requests.cpu": "1", "secrets": "9"})
    assert door.refuse("pods", pod("p", container("c", {"cpu": "200m"}))) == (
        'pods "p" is forbidden: exceeded quota: small, requested: pods=1,requests.cpu=200m, '
        "used: pods=3,requests.cpu=900m, limited: pods=3,requests.cpu=1"
    )


def test_objects_are_counted_when_they_come_in(door: Door) -> None:
    door.quota("few", hard={"configmaps": "1", "count/deployments.apps": "0"})
    door.let_in("configmaps", {"metadata": {"name": "one"}})
    assert door.refuse("configmaps", {"metadata": {"name": "two"}}) == (
        'configmaps "two" is forbidden: exceeded quota: few, requested: configmaps=1, used: configmaps=1, '
        "limited: configmaps=1"
    )
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container("c")]}}
    deployment = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    assert door.refuse("deployments.apps", deployment) == (
        'deployments.apps "web" is forbidden: exceeded quota: few, requested: count/deployments.apps=1, '
        "used: count/deployments.apps=0, limited: count/deployments.apps=0"
    )


def test_a_quota_nobody_has_counted_yet_limits_nothing(door: Door) -> None:
    door.let_in("resourcequotas", {"metadata": {"name": "new"}, "spec": {"hard": {"pods": "0", "requests.cpu": "1"}}})
    assert door.let_in("pods", pod())["metadata"]["uid"]


def test_a_quota_counted_in_part_lets_nothing_in(door: Door) -> None:
    admitted = door.let_in("resourcequotas", {"metadata": {"name": "half"}, "spec": {"hard": {"pods": "9"}}})
    status = {"hard": {"pods": "9", "count/pods": "9"}, "used": {"pods": "0"}}
    door.world.store.put("resourcequotas", {**admitted, "metadata": dict(admitted["metadata"]), "status": status})
    assert door.refuse("pods", pod()) == (
        'pods "p" is forbidden: status unknown for quota: half, resources: count/pods,pods'
    )


def test_scopes_choose_the_pods_a_quota_counts(door: Door) -> None:
    door.quota("best-effort", hard={"pods": "0"}, scopes=["BestEffort"])
    door.let_in("pods", pod("burstable", container("c", {"cpu": "1"})))
    assert door.refuse("pods", pod("free")) == (
        'pods "free" is forbidden: exceeded quota: best-effort, requested: pods=1, used: pods=0, limited: pods=0'
    )


def test_a_scope_counts_pods_with_affinity_to_those_of_other_namespaces(door: Door) -> None:
    door.quota("across", hard={"pods": "0"}, scopes=["CrossNamespacePodAffinity"])
    term = {"topologyKey": "zone", "labelSelector": {}}
    for extra, counted in (({}, False), ({"namespaces": ["other"]}, True), ({"namespaceSelector": {}}, True)):
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, **extra}]}}
        near = pod(f"p{len(extra)}{'s' if 'namespaces' in extra else ''}", container("c"), affinity=affinity)
        if counted:
            assert "exceeded quota: across" in door.refuse("pods", near)
        else:
            door.let_in("pods", near)
