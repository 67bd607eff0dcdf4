"""Overloaded message brokers."""

from __future__ import annotations

from functools import partial

from srearena.conductor.oracles.checks.consumption import Consumption
from srearena.conductor.oracles.checks.metric_range import MetricRange
from srearena.conductor.problems.feature_flags import CHECKOUT
from srearena.conductor.problems.injected import POD, RESTORE
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem


@problem(
    "kafka_producer_leak", app="astronomy_shop", service="checkout", victims=("kafka", "accounting", "fraud-detection")
)
class KafkaProducerLeak(OriginProblem):
    family = "kafka_producer_leak"
    level = "application"
    difficulty = "hard"
    fault = "kafka_producer_leak"
    also_changed = ("Deployment/kafka",)  # with its former limit it refuses the records
    fault_type = "Code Defect"
    explanation = (
        "A container beside {service} sends records of ten megabytes to kafka without pause, and kafka was set to take "
        "them: it is killed for its memory again and again."
    )
    also = (
        partial(Consumption, CHECKOUT),
        partial(
            MetricRange,
            "the rate of messages at the broker",
            'sum(rate(kafka_topic_partition_current_offset{namespace="{ns}"}[2m]))',
            least=0.0,
            most=10.0,
            slack=1.0,  # more memory for the broker under the same load is not a remedy
        ),
    )
    restores = (f"{POD}/containers",)
    remedy = f"""\
{RESTORE}
kubectl -n {{ns}} scale deployment/{{service}} --replicas=0
kubectl -n {{ns}} set env deployment/kafka KAFKA_MESSAGE_MAX_BYTES-
kubectl -n {{ns}} rollout status deployment/kafka --timeout=100s
kubectl -n {{ns}} scale deployment/{{service}} --replicas=1"""
