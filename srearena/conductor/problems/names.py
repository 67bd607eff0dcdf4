"""DNS faults in pod settings."""

from __future__ import annotations

from srearena.conductor.problems.injected import UNDO, InjectedProblem
from srearena.conductor.problems.registry import problem


@problem("wrong_dns_policy_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("wrong_dns_policy_hotel_reservation", app="hotel_reservation", service="profile")
@problem("wrong_dns_policy_social_network", app="social_network", service="user-service")
class WrongDnsPolicy(InjectedProblem):
    family = "wrong_dns_policy"
    fault = "wrong_dns_policy"
    explanation = "The pods of {service} ask a name server outside the cluster, which knows none of its Services."
    remedy = UNDO
