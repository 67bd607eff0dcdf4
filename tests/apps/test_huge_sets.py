"""A set that is asked for far too much grows at the pace of its controller, and shrinks when it is told to."""

from __future__ import annotations

from tests.apps.deployed import empty_cluster


def test_a_hundred_thousand_replicas_do_not_come_at_once() -> None:
    labels = {"app": "huge"}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "1"}}}
    with empty_cluster() as lab:
        lab.api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {"name": "huge", "namespace": "default"},
                "spec": {
                    "replicas": 100_000,
                    "serviceName": "huge",
                    "podManagementPolicy": "Parallel",
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                },
            }
        )
        lab.wait(5)
        first = len(lab.pods("default"))
        lab.wait(20)
        second = len(lab.pods("default"))
        assert 100 <= first < second <= 100 + 5 * 25
        lab.api.scale("statefulsets", "huge", 2, "default")
        lab.wait(90)
        assert sorted(lab.pods("default")) == ["huge-0", "huge-1"]


def test_an_ordinary_set_comes_at_once() -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]}}
    with empty_cluster() as lab:
        lab.api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {
                    "replicas": 50,
                    "serviceName": "web",
                    "podManagementPolicy": "Parallel",
                    "selector": {"matchLabels": labels},
                    "template": template,
                },
            }
        )
        lab.wait(1)
        assert len(lab.pods("default")) == 50
