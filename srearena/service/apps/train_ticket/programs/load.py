"""Requests that write, as the load generator of Train Ticket makes them (its locustfile).

Contacts that it makes are deleted at once and leave nothing; vouchers stay.
"""

from __future__ import annotations

import json
from random import Random

from srearena.cluster.program_models import HttpRequest
from srearena.cluster.program_models.application_data import load_sample
from srearena.service.apps.train_ticket.programs.data_sets import APPLICATION, orders


@load_sample(APPLICATION, "ts-voucher-service", "getVoucher")
def ask_for_voucher(random: Random, session: int) -> HttpRequest:
    body = {"orderId": random.choice(orders())["id"], "type": 1}
    return HttpRequest("POST", "/getVoucher", {"Content-Type": "application/json"}, json.dumps(body).encode())
