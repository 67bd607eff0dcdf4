"""Defects of Train Ticket's services behind feature flags with opaque names."""

from __future__ import annotations

from functools import partial

from srearena.conductor.oracles.checks.requests import Requests
from srearena.conductor.problems.feature_flags import FeatureFlag
from srearena.conductor.problems.registry import problem
from srearena.service.frontend import Frontend, SampleRequest

_APP = "train_ticket"
_VOUCHERS = Frontend("ts-voucher-service", 16101)  # the paths that the users' client requests
_VOUCHER = SampleRequest("/getVoucher", "POST", '{"orderId":"5ad7750b-a68b-49c0-a8c0-32776b067701","type":1}')
_CONTACT = SampleRequest(
    "/api/v1/contactservice/contacts",
    "POST",
    '{"name":"Ada","accountId":"4d2a46c7","documentType":"1","documentNumber":"A1","phoneNumber":"1"}',
)


class TrainTicketFlag(FeatureFlag):
    difficulty = "hard"
    remedy = """\
kubectl -n {ns} get configmap flagd-config -o yaml \\
  | sed "/{flag}:/,/defaultVariant/ s/defaultVariant: .*/defaultVariant: 'off'/" \\
  | kubectl -n {ns} replace -f -
kubectl -n {ns} rollout restart deployment/flagd
kubectl -n {ns} rollout status deployment/flagd --timeout=90s"""


@problem("trainticket_f17_nested_sql_select_clause_error", app=_APP, service="ts-voucher-service")
class SlowVouchers(TrainTicketFlag):
    fault = "tt-feat-17"
    victims = ()
    explanation = (
        "The flag {flag} makes {service} run a nested query that takes ten seconds before every voucher; it serves one "
        "request at a time, so its callers time out."
    )
    also = (partial(Requests, _VOUCHER, times=20, at=_VOUCHERS),)


@problem("trainticket_f22_sql_column_name_mismatch_error", app=_APP, service="ts-contacts-service")
class WrongColumn(TrainTicketFlag):
    fault = "tt-feat-22"
    victims = ("ts-gateway-service", "ts-ui-dashboard")
    explanation = "The flag {flag} makes {service} ask for a column accountId, which its table does not have."
    also = (partial(Requests, _CONTACT, times=30),)
