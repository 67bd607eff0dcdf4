"""Localization: which names an answer may use, and that nothing an agent makes changes what a name stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.conductor.episode.episode import Episode
from srearena.conductor.grading.baseline import Baseline
from srearena.conductor.grading.known_objects import KnownObjects
from srearena.conductor.grading.stored_state import capture_state, restore_state
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.diagnosis import DiagnosisOracle
from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.metadata import Entity, Origin
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.service.kubernetes import Kubernetes
from tests.arena.episodes import SHOP, prepared_episode, shop_problem

RESOURCES = {"Deployment": "deployments.apps", "StatefulSet": "statefulsets.apps", "Service": "services"}


def workload(name: str, namespace: str = "shop", kind: str = "Deployment") -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}}
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": {"template": template}}


def service(name: str, app: str, namespace: str = "shop") -> dict[str, Any]:
    return {
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"app": app}},
    }


def plain(kind: str, name: str, namespace: str = "shop") -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}}


def capture(*objects: dict[str, Any]) -> Baseline:
    def key(obj: dict[str, Any]) -> tuple[str, str, str]:
        metadata = obj["metadata"]
        return RESOURCES.get(obj["kind"], obj["kind"]), metadata.get("namespace", ""), metadata["name"]

    return Baseline({key(obj): obj for obj in objects})


HEALTHY = (
    workload("cart"),
    workload("web"),
    workload("db", kind="StatefulSet"),
    workload("proxy"),
    workload("proxy", "kube-system", "DaemonSet"),
    workload("coredns", "kube-system"),
    service("cart-api", "cart"),
    service("web", "web"),
    plain("ConfigMap", "settings"),
    plain("ConfigMap", "coredns", "kube-system"),
    plain("Namespace", "shop", ""),
    plain("Ingress", "shop"),
    plain("ClusterRole", "edit", ""),
)
KNOWN = KnownObjects.of(capture(*HEALTHY))
CART, WEB = "shop/Deployment/cart", "shop/Deployment/web"


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("cart", CART),
        ("CART", CART),
        ("deployment/cart", CART),
        ("deployment.apps/cart", CART),
        ("deploy/cart", CART),
        ("shop/cart", CART),
        ("shop/Deployment/cart", CART),
        ("Deployment/shop/cart", CART),
        ("pod/cart-5d9c7b6f4-x2k8p", CART),
        ("cart-api", CART),
        ("svc/cart-api", CART),
        ("shop/Service/cart-api", CART),
        ("cart-5d9c7b6f4", CART),
        ("cart-7c6d5f4b88-zzzzz", CART),
        ("db-0", "shop/StatefulSet/db"),
        ("coredns-5d9c7b6f4-x2k8p", "kube-system/Deployment/coredns"),
        ("kube-system/coredns-5d9c7b6f4-x2k8p", "kube-system/Deployment/coredns"),
        ("configmap/settings", "shop/ConfigMap/settings"),
        ("shop", "shop/Ingress/shop"),
        ("namespace/shop", "Namespace/shop"),
    ],
)
def test_one_component_goes_by_several_names(name: str, component: str) -> None:
    (meaning,) = KNOWN.meanings(name)
    assert component in meaning.components


@pytest.mark.parametrize(
    "name",
    [
        "cart-store",  # a word is no generated suffix
        "cart-mongo",
        "cart-v2",
        "cart-0",  # a Deployment has no ordinals
        "db-x2k8p",
        "configmap/cart",
        "kube-system/cart",
        "other/cart",
        "secret/settings",
        "a/b/c/cart",
        "c\u0430rt",  # a Cyrillic letter
        "cart\u200b",
        "/cart/",
        "",
    ],
)
def test_other_names_stand_for_nothing_known(name: str) -> None:
    (meaning,) = KNOWN.meanings(name)
    assert meaning.components == {name}


def test_a_name_in_two_namespaces_stands_for_both_unless_qualified() -> None:
    assert {meaning.label for meaning in KNOWN.meanings("proxy")} == {
        "shop/Deployment/proxy",
        "kube-system/DaemonSet/proxy",
    }
    assert [meaning.label for meaning in KNOWN.meanings("kube-system/proxy")] == ["kube-system/DaemonSet/proxy"]


def test_a_program_does_not_stand_for_its_rights_in_another_namespace() -> None:
    known = KnownObjects.of(
        capture(
            workload("operator", "system"), plain("RoleBinding", "operator"), plain("ConfigMap", "operator", "tools")
        )
    )
    assert {one.label for one in known.meanings("operator")} == {
        "system/Deployment/operator",
        "tools/ConfigMap/operator",
    }
    (binding,) = known.meanings("rolebinding/operator")
    assert binding.label == "shop/RoleBinding/operator"
    (own,) = KnownObjects.of(capture(plain("RoleBinding", "operator"))).meanings("operator")
    assert own.label == "shop/RoleBinding/operator"


def test_a_selector_counts_as_it_was_before_the_fault() -> None:
    stolen = (workload("cart"), workload("web"), service("cart-api", "web"), service("late", "web"))
    known = KnownObjects.of(capture(*HEALTHY), capture(*stolen))
    assert known.meanings("cart-api")[0].components == {CART}
    assert known.meanings("late")[0].components == {"shop/Service/late"}


@given(st.text(max_size=40))
def test_any_text_has_a_meaning(text: str) -> None:
    assert KNOWN.meanings(text)


class Keyed(Problem):
    """A problem with a given key, and no fault."""

    def __init__(self, *origins: Origin) -> None:
        self.app = shop_problem(ScalePodZero).app
        self._origins = origins
        self.known_objects = KNOWN

    @property
    def origins(self) -> Sequence[Origin]:
        return self._origins

    def inject_fault(self) -> None: ...

    def recover_fault(self) -> None: ...


def entity(text: str) -> Entity:
    return Entity.parse(text, "shop")


SETTINGS = Origin(
    (entity("ConfigMap/settings"), entity("FeatureFlag/freeShipping")),
    (entity("Deployment/cart"),),
    (entity("Deployment/web"),),
)
DNS = Origin((entity("kube-system/ConfigMap/coredns"),), (entity("kube-system/Deployment/coredns"),))


@pytest.mark.parametrize(
    ("answer", "passed", "score"),
    [
        (["settings"], True, 1.0),
        (["cart"], True, 1.0),
        (["cart-api"], True, 1.0),
        (["freeShipping"], True, 1.0),
        (["flag/freeshipping"], True, 1.0),
        (["settings", "cart", "cart-5d9c7b6f4-x2k8p", "freeShipping"], True, 1.0),
        (["settings", "web"], True, 1.0),  # what contributes may be named in addition
        (["web"], False, 0.0),
        (["settings", "db"], False, 2 / 3),
        (["kube-system/settings"], False, 0.0),
        ([], False, 0.0),
        ([f"cart-{number}" for number in range(99)] + ["cart"], False, 2 / 101),
    ],
)
def test_an_origin_is_named_by_any_of_its_members(answer: list[str], passed: bool, score: float) -> None:
    verdict = LocalizationOracle(Keyed(SETTINGS)).evaluate(answer)
    assert (verdict.passed, verdict.score) == (passed, pytest.approx(score))


def test_every_origin_must_be_named() -> None:
    oracle = LocalizationOracle(Keyed(SETTINGS, DNS))
    assert oracle.evaluate(["cart", "settings"]).details["recall"] == 0.5
    assert oracle.evaluate(["cart", "coredns"]).passed
    assert not oracle.evaluate(["cart", "shop/coredns"]).passed


def test_a_name_that_is_also_used_elsewhere_must_be_qualified() -> None:
    oracle = LocalizationOracle(Keyed(Origin((entity("kube-system/DaemonSet/proxy"),))))
    assert oracle.evaluate(["kube-system/proxy"]).passed
    assert not oracle.evaluate(["proxy"]).passed
    assert not oracle.evaluate(["shop/proxy"]).passed


def test_a_healthy_system_has_no_origin() -> None:
    oracle = LocalizationOracle(Keyed())
    assert oracle.evaluate([]).passed
    assert not oracle.evaluate(["cart"]).passed


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("Somebody edited settings: the cart obeys settings and fails, and web with it.", True),
        ("The web tier is slow; web pods wait for the db, and the db for cart.", False),
        ("cart and db are broken", False),
        ("An edit of settings made the cart fail: undo the edit, or edit it again.", True),  # a ClusterRole is no word
        ("All is well.", False),
    ],
)
def test_a_text_blames_what_it_names_most(text: str, passed: bool) -> None:
    assert DiagnosisOracle(Keyed(SETTINGS)).evaluate(text).passed is passed


def test_entities_of_a_diagnosis_are_compared_as_origins() -> None:
    oracle = DiagnosisOracle(Keyed(SETTINGS))
    blamed = {"name": "shop/ConfigMap/settings", "contributing_factor": True}
    affected = {"name": "shop/Deployment/db", "contributing_factor": False}
    assert oracle.evaluate({"entities": [blamed, affected]}).passed
    assert not oracle.evaluate({"entities": [blamed, {**affected, "contributing_factor": True}]}).passed


def test_the_ground_truth_holds_the_members_of_an_origin_as_aliases() -> None:
    truth = Keyed(SETTINGS, DNS).ground_truth
    assert truth.as_document()["roots"] == ["shop/ConfigMap/settings", "kube-system/ConfigMap/coredns"]
    assert truth.aliases[0] == ("shop/ConfigMap/settings", "shop/FeatureFlag/freeShipping", CART)
    assert {group.id for group in truth.roots} == {name for names in truth.aliases for name in names}


# --- an agent with the rights to change the cluster -------------------------------------------------------------------


@pytest.fixture(scope="module")
def episode() -> Iterator[Episode]:
    with prepared_episode(shop_problem(ScalePodZero, "store"), stages=("detection", "localization")) as prepared:
        yield prepared


def verdict(episode: Episode, *names: str) -> Verdict:
    return Verdict.from_answer(episode.problem.oracle_for("localization").evaluate(list(names)))


def test_objects_of_the_agent_never_alias(episode: Episode) -> None:
    """Owner references, selectors and names that the agent writes have no influence on the verdict."""
    namespace = episode.problem.namespace
    pod = {"containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "infinity"]}]}
    assert episode.kubeconfig is not None
    with Kubernetes(episode.kubeconfig) as agent:
        owner = agent.get("configmaps", "kube-root-ca.crt", namespace)["metadata"]
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["name"],
            "uid": owner["uid"],
            "controller": True,
        }
        for deployment in agent.list("deployments", namespace):
            name = deployment["metadata"]["name"]
            labels = {"app": f"{name}-copy"}
            template = {"metadata": {"labels": labels}, "spec": pod}
            agent.create(
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "metadata": {"name": name, "ownerReferences": [reference]},
                    "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
                },
                namespace,
            )
        selected = agent.get("deployments", "store", namespace)["spec"]["template"]["metadata"]["labels"]
        agent.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "answer"},
                "spec": {"selector": selected, "ports": [{"port": 80}]},
            },
            namespace,
        )
        agent.patch("services", "api", {"spec": {"selector": selected}}, namespace, kind="merge")
    assert not verdict(episode, "kube-root-ca.crt").passed
    assert not verdict(episode, "api").passed
    assert not verdict(episode, "answer").passed
    assert verdict(episode, "store").passed


def test_pods_of_a_later_rollout_belong_to_their_workload(episode: Episode) -> None:
    problem = episode.problem
    problem.kubernetes.restart("deployments", "api", problem.namespace)
    problem.kubernetes.scale("deployments", "store", 1, problem.namespace)
    problem.cluster.wait(60)
    pods = [pod["metadata"]["name"] for pod in problem.kubernetes.list("pods", problem.namespace)]
    assert verdict(episode, *[name for name in pods if name.startswith("store-")]).passed
    (wrong,) = {verdict(episode, name).reasons[1] for name in pods if name.startswith("api-")}
    assert wrong == f"{problem.namespace}/Deployment/api was named, and is not at fault"


def test_a_stored_state_grades_as_the_episode_did(episode: Episode) -> None:
    state = capture_state(episode.problem)
    for service_name in ("store", "api"):  # the same key, and one whose target was drawn at random
        again = ScalePodZero(app=SHOP, service=service_name)
        restore_state(again, state)
        oracle = again.oracle_for("localization")
        assert Verdict.from_answer(oracle.evaluate(["store"])).passed
        assert not Verdict.from_answer(oracle.evaluate(["api"])).passed
        assert not Verdict.from_answer(oracle.evaluate(["kube-root-ca.crt"])).passed
    with pytest.raises(ValueError, match="damaged"):
        restore_state(again, {"names": []})
