"""DNS faults in pod settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from srearena.conductor.problems.injected import POD, RESTORE, InjectedProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import dependents
from srearena.conductor.problems.variation import Choice


@problem("wrong_dns_policy_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("wrong_dns_policy_hotel_reservation", app="hotel_reservation", service="profile")
@problem("wrong_dns_policy_social_network", app="social_network", service="user-service")
class WrongDnsPolicy(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": dependents, "nameserver": ("8.8.8.8", "1.1.1.1", "9.9.9.9")}
    family = "wrong_dns_policy"
    fault = "wrong_dns_policy"
    explanation = "The pods of {service} ask a name server outside the cluster, which knows none of its Services."
    remedy = RESTORE
    restores = (f"{POD}/dnsPolicy", f"{POD}/dnsConfig")
