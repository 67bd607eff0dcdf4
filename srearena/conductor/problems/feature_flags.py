"""Defects of the Astronomy Shop's programs behind feature flags.

The origin is the flag in flagd's config map, and the program that obeys it; flagd only serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

from srearena.conductor.oracles.checks import Check, FrontendAvailability
from srearena.conductor.oracles.checks.after_restart import AfterRestart
from srearena.conductor.oracles.checks.consumption import Consumption
from srearena.conductor.oracles.checks.flag_value import FlagValue
from srearena.conductor.oracles.checks.metric_range import MetricRange
from srearena.conductor.oracles.checks.requests import Requests
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.metadata import Entity, FaultType
from srearena.conductor.problems.registry import problem
from srearena.generators.fault.inject_otel import CONFIG_MAP
from srearena.service.frontend import SampleRequest
from srearena.service.kubernetes import Obj

ADS = SampleRequest("/api/data/?contextKeys=telescopes")
CHECKOUT = SampleRequest(
    "/api/checkout",
    "POST",
    '{"userId":"9b1f0c4e","userCurrency":"USD","email":"someone@example.com","address":{"streetAddress":"1 Main St",'
    '"state":"CA","country":"US","city":"Los Altos","zipCode":"94022"},"creditCard":{"creditCardNumber":'
    '"4432-8015-6152-0454","creditCardExpirationMonth":1,"creditCardExpirationYear":2039,"creditCardCvv":672}}',
)
EMPTY_CART = SampleRequest("/api/cart", "DELETE", '{"userId":"9b1f0c4e"}', status=204)
PRODUCT = SampleRequest("/api/products/OLJCESPC7Z")
_PICTURES = '{namespace="{ns}", service_name="frontend-proxy", span_name=~"GET /images/.*"}'


class FeatureFlag(InjectedProblem):
    """An enabled flag; `victims` are affected by the behaviour of `service`."""

    family = "feature_flag"
    level = "application"
    fault_type: FaultType = "Code Defect"
    root_kind = "ConfigMap"
    root_name = CONFIG_MAP
    also_changed = ("FeatureFlag/{flag}",)
    contributing = ("Deployment/flagd",)
    victims: ClassVar[tuple[str, ...]] = ("frontend", "frontend-proxy")
    remedy = """\
kubectl -n {ns} get configmap flagd-config -o yaml \\
  | sed '/"{flag}"/,/"defaultVariant"/ s/"defaultVariant": "[^"]*"/"defaultVariant": "off"/' \\
  | kubectl -n {ns} replace -f -
kubectl -n {ns} rollout restart deployment/flagd
kubectl -n {ns} rollout status deployment/flagd --timeout=90s"""

    def __init__(self, service: str, app: str = "astronomy_shop", **options: Any) -> None:
        super().__init__(app, service, **options)
        checks = [check() for check in self.also]
        self.mitigation_oracle = MitigationOracle(
            self, also=[FlagValue(self.fault), *checks, AfterRestart("flagd", checks or [FrontendAvailability()])]
        )

    def _substitute(self, text: str, service: str | None = None) -> str:
        return super()._substitute(text.replace("{flag}", self.fault), service)

    @property
    def propagation(self) -> Sequence[tuple[Entity, Entity]]:
        chain = [Entity("ConfigMap", CONFIG_MAP, self.namespace)]
        chain += [Entity("Deployment", name, self.namespace) for name in (*self.services, *self.victims)]
        return tuple(pairwise(chain))


@problem("astronomy_shop_ad_service_failure", service="ad")
class AdFailure(FeatureFlag):
    fault = "adFailure"
    explanation = "The flag {flag} makes the ad service refuse one request in ten."
    also = (partial(Requests, ADS, times=120),)


@problem("astronomy_shop_ad_service_manual_gc", service="ad")
class AdManualGc(FeatureFlag):
    fault = "adManualGc"
    difficulty = "hard"
    explanation = "The flag {flag} makes the ad service collect garbage by hand at every request, for seconds."
    also = (partial(Requests, ADS, times=30, seconds=2),)


@problem("astronomy_shop_ad_service_high_cpu", service="ad")
class AdHighCpu(FeatureFlag):
    """Sets a CPU limit on the ad service from the start."""

    fault = "adHighCpu"
    difficulty = "hard"
    explanation = "The flag {flag} makes the ad service keep four processors busy, and its limit starves its requests."
    also = (
        partial(
            MetricRange,
            "the processor time that ad takes",
            'sum(rate(container_cpu_usage_seconds_total{namespace="{ns}", container="ad"}[2m]))',
            least=0.0,
            most=3.0,
            slack=0.05,
        ),
        partial(Requests, ADS, times=30, seconds=2),
    )

    def set_up(self) -> None:
        limited = {"spec": {"containers": [{"name": "ad", "resources": {"limits": {"cpu": "200m"}}}]}}
        self.kubernetes.patch("deployments", "ad", {"spec": {"template": limited}}, self.namespace)
        self.cluster.wait(90)


@problem("astronomy_shop_ad_service_image_slow_load", aliases=("astronomy_shop_image_slow_load",), service="frontend")
class ImageSlowLoad(FeatureFlag):
    """Adds browser clients to the load, because only pages request images."""

    fault = "imageSlowLoad"
    misbehaving = (
        "Deployment/frontend",
        "Deployment/frontend-proxy",
    )  # the page asks, the proxy delays
    victims = ("frontend-proxy",)
    explanation = "The flag {flag} makes the pages of the frontend have their pictures held back for ten seconds each."
    also = (
        partial(
            MetricRange,
            "the time in milliseconds that a picture takes",
            f"sum(rate(traces_span_metrics_duration_milliseconds_sum{_PICTURES}[1m]))"
            f" / sum(rate(traces_span_metrics_duration_milliseconds_count{_PICTURES}[1m]))",
            least=0.0,
            most=3.0,
            slack=100.0,
        ),
    )

    def set_up(self) -> None:
        env = [{"name": "LOCUST_BROWSER_TRAFFIC_ENABLED", "value": "true"}]
        browsing = {"spec": {"containers": [{"name": "load-generator", "env": env}]}}
        self.kubernetes.patch("deployments", "load-generator", {"spec": {"template": browsing}}, self.namespace)
        self.cluster.wait(120)


@problem("astronomy_shop_cart_service_failure", service="cart")
class CartFailure(FeatureFlag):
    fault = "cartFailure"
    difficulty = "hard"
    victims = ("checkout", "frontend")
    explanation = (
        "The flag {flag} makes the cart service look for its store at an address where it is not to empty one."
    )
    also = (partial(Requests, EMPTY_CART, times=10),)


@problem("astronomy_shop_failed_readiness_probe", service="cart")
class FailedReadinessProbe(FeatureFlag):
    """Adds a readiness probe to the cart service, which the flag makes fail."""

    fault = "failedReadinessProbe"
    victims = ("checkout", "frontend", "frontend-proxy")
    explanation = "The flag {flag} makes the cart service answer its readiness probe that it is not serving."

    def set_up(self) -> None:
        probe: Obj = {"grpc": {"port": 8080, "service": "oteldemo.CartService"}, "periodSeconds": 10}
        probed = {"spec": {"containers": [{"name": "cart", "readinessProbe": probe}]}}
        self.kubernetes.patch("deployments", "cart", {"spec": {"template": probed}}, self.namespace)
        self.cluster.wait(60)


@problem("astronomy_shop_payment_service_failure", service="payment")
class PaymentFailure(FeatureFlag):
    fault = "paymentFailure"
    difficulty = "easy"
    victims = ("checkout", "frontend", "frontend-proxy")
    explanation = "The flag {flag} makes the payment service refuse every charge."
    also = (partial(Requests, CHECKOUT, times=30),)


@problem("astronomy_shop_payment_service_unreachable", service="checkout")
class PaymentUnreachable(FeatureFlag):
    fault = "paymentUnreachable"
    explanation = "The flag {flag} makes checkout look for the payment service at an address where it is not."
    also = (partial(Requests, CHECKOUT, times=30),)


@problem("astronomy_shop_product_catalog_service_failure", service="product-catalog")
class ProductCatalogFailure(FeatureFlag):
    fault = "productCatalogFailure"
    victims = ("recommendation", "checkout", "frontend", "frontend-proxy")
    explanation = "The flag {flag} makes the product catalogue fail for one of its products."
    also = (partial(Requests, PRODUCT, times=120),)


@problem("astronomy_shop_recommendation_service_cache_failure", service="recommendation")
class RecommendationCacheFailure(FeatureFlag):
    fault = "recommendationCacheFailure"
    explanation = "The flag {flag} makes the recommendation service miss its cache and fail every second time."


@problem("kafka_queue_problems", aliases=("astronomy_shop_kafka_queue_problems",), service="checkout")
class KafkaQueueProblems(FeatureFlag):
    fault = "kafkaQueueProblems"
    difficulty = "hard"
    misbehaving = ("Deployment/checkout", "Deployment/fraud-detection")  # both obey it
    victims = ("kafka", "fraud-detection")
    explanation = (
        "The flag {flag} makes checkout publish a hundred messages more for each order, and fraud-detection take a "
        "second for each: its group falls ever further behind."
    )
    also: ClassVar[tuple[Callable[[], Check], ...]] = (partial(Consumption, CHECKOUT),)


@problem(
    "loadgenerator_flood_homepage", aliases=("astronomy_shop_loadgenerator_flood_homepage",), service="load-generator"
)
class FloodHomepage(FeatureFlag):
    fault = "loadGeneratorFloodHomepage"
    victims = ("frontend-proxy", "frontend")
    fault_type = "Operation Error"
    explanation = "The flag {flag} makes every visitor ask for the home page a hundred times at once."
    also = (
        partial(
            MetricRange,
            "the rate of requests at the frontend",
            "sum(rate(traces_span_metrics_calls_total"
            '{namespace="{ns}", service_name="frontend-proxy", span_kind="SPAN_KIND_SERVER"}[2m]))',
            least=0.3,
            most=2.5,
        ),
    )
