"""Wrong settings in the Astronomy Shop: images, addresses, variables, rights, selectors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from srearena.conductor.oracles.checks.requests import Requests
from srearena.conductor.problems.feature_flags import CHECKOUT
from srearena.conductor.problems.injected import CONTAINER, RESTORE
from srearena.conductor.problems.metadata import Level
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import callers, components
from srearena.conductor.problems.variation import Choice
from srearena.generators.fault.steps import workers
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

_SHOP = "astronomy_shop"
_WRONG_PORT = {"variable": "PRODUCT_CATALOG_ADDR", "value": "product-catalog:8082"}


class ShopSetting(OriginProblem):
    level: Level = "application"
    remedy = RESTORE
    restores: ClassVar[tuple[str, ...]] = (f"{CONTAINER}/env",)


@problem(
    "incorrect_image",
    app=_SHOP,
    service="product-catalog",
    victims=("recommendation", "frontend", "frontend-proxy"),
    image="app-image:latest",
)
class IncorrectImage(ShopSetting):
    varies: ClassVar[Mapping[str, Choice]] = {
        "service": components,
        "victims": callers,
        "image": ("app-image:latest", "registry.example.com/shop/service:1.18.0", "ghcr.io/open-telemetry/demo:2.2.O"),
    }
    family = "incorrect_image"
    level = "virtualization"
    difficulty = "easy"
    fault = "incorrect_image"
    restores = (f"{CONTAINER}/image",)
    explanation = "{service} is to run the image {image}, which does not exist."


@problem(
    "incorrect_port_assignment", app=_SHOP, service="checkout", victims=("frontend", "frontend-proxy"), **_WRONG_PORT
)
class IncorrectPortAssignment(ShopSetting):
    varies: ClassVar[Mapping[str, Choice]] = {
        "value": ("product-catalog:8082", "product-catalog:8081", "product-catalog:3550")
    }
    family = "incorrect_port_assignment"
    fault = "incorrect_port_assignment"
    explanation = "{service} looks for the product catalogue at {value}, a port on which it does not listen."
    also = (partial(Requests, CHECKOUT, times=30),)


@problem(
    "unschedulable_incorrect_port_assignment",
    app=_SHOP,
    service="checkout",
    victims=("frontend", "frontend-proxy"),
    **_WRONG_PORT,
)
class UnschedulableIncorrectPortAssignment(ShopSetting):
    varies: ClassVar[Mapping[str, Choice]] = {
        "value": ("product-catalog:8082", "product-catalog:8081", "product-catalog:3550")
    }
    family = "unschedulable_incorrect_port_assignment"
    difficulty = "hard"
    fault = "unschedulable_incorrect_port_assignment"
    explanation = (
        "{service} asks for a node that does not exist; and once it runs, it looks for the product catalogue at "
        "{value}, a port on which it does not listen."
    )
    also = (partial(Requests, CHECKOUT, times=30),)
    remedy = """\
kubectl -n {ns} patch deployment {service} --type=json \\
  -p '[{"op": "remove", "path": "/spec/template/spec/nodeSelector"}]'
kubectl -n {ns} set env deployment/{service} PRODUCT_CATALOG_ADDR=product-catalog:8080"""


@problem(
    "missing_env_variable_astronomy_shop",
    app=_SHOP,
    service="frontend",
    victims=("frontend-proxy",),
    variable="CART_ADDR",
)
class MissingEnvVariable(ShopSetting):
    family = "missing_env_variable"
    fault = "missing_env_variable"
    explanation = "{service} has lost its variable {variable}, and with it the way to the cart service."


@problem(
    "env_variable_shadowing_astronomy_shop",
    app=_SHOP,
    service="frontend-proxy",
    variable="FRONTEND_HOST",
    value="localhost",
)
class EnvVariableShadowing(ShopSetting):
    family = "env_variable_shadowing"
    fault = "env_variable_shadowing"
    explanation = "{service} has the variable {variable} twice, and the second, {value}, hides the first."


@problem("rbac_misconfiguration", app=_SHOP, service="frontend", victims=("frontend-proxy",))
class RbacMisconfiguration(ShopSetting):
    family = "rbac_misconfiguration"
    level = "virtualization"
    fault = "rbac_misconfiguration"
    fault_type = "Authentication Issue"
    root_kind = "Role"
    also_changed = ("Deployment/{service}",)  # it got the init container that needs the right
    contributing = ("RoleBinding/{service}", "ServiceAccount/{service}")
    explanation = "The role of {service}'s account does not let its init container read the config map it asks for."
    remedy = """\
kubectl -n {ns} patch role {service} --type=json \\
  -p '[{"op": "add", "path": "/rules/-", "value": {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}}]'
kubectl -n {ns} rollout restart deployment/{service}"""


@problem(
    "internal_traffic_policy_local_astronomy_shop",
    app=_SHOP,
    service="recommendation",
    victims=("frontend", "frontend-proxy"),
)
class InternalTrafficPolicyLocal(OriginProblem):
    """Places caller and callee on different nodes from the start."""

    family = "internal_traffic_policy_local"
    level = "network"
    fault = "internal_traffic_policy_local"
    root_kind = "Service"
    explanation = "The Service {service} serves only callers on the node of its pods, and its callers are elsewhere."
    remedy = 'kubectl -n {ns} patch service {service} -p \'{"spec": {"internalTrafficPolicy": "Cluster"}}\''

    def set_up(self) -> None:
        nodes = workers(Testbed.of(self.namespace, self.cluster, self.kubernetes))
        for deployment, node in zip(("recommendation", "frontend"), (nodes[0], nodes[-1]), strict=True):
            pinned: Obj = {"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}}
            self.kubernetes.patch("deployments", deployment, {"spec": {"template": pinned}}, self.namespace)
        self.cluster.wait(60)
