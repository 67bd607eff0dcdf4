"""Requests that write, as the load generator of Social Network makes them (workload/mixed.lua)."""

from __future__ import annotations

import string
from random import Random
from urllib.parse import urlencode

from srearena.cluster.program_models import HttpRequest
from srearena.cluster.program_models.application_data import load_sample
from srearena.service.apps.social_network.programs.data_sets import APPLICATION, USERS

_LETTERS = string.ascii_letters + string.digits


@load_sample(APPLICATION, "nginx-web-server", "compose")
def compose(random: Random, session: int) -> HttpRequest:
    user = random.randrange(USERS)
    words = ["".join(random.choices(_LETTERS, k=256))]
    words += [f"@username_{random.randrange(USERS)}" for _ in range(random.randint(1, 6))]
    words += ["http://" + "".join(random.choices(_LETTERS, k=64)) for _ in range(random.randint(1, 6))]
    media = [f'"{random.randrange(10**17, 10**18)}"' for _ in range(random.randint(1, 5))]
    kinds = ['"png"'] * len(media)
    form = {
        "username": f"username_{user}",
        "user_id": user,
        "text": " ".join(words),
        "media_ids": f"[{','.join(media)}]",
        "media_types": f"[{','.join(kinds)}]",
        "post_type": 0,
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return HttpRequest("POST", "/wrk2-api/post/compose", headers, urlencode(form).encode())
