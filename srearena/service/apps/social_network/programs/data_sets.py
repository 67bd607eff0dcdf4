"""The users and the social graph with which Social Network starts.

As many users as the graph that DeathStarBench loads (962, socfb-Reed98), with its names and passwords. The edges are
regular instead of that graph's: each user follows four others.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from srearena.cluster.program_models.application_data import data_set

APPLICATION = "social-network"
USERS = 962
_STEPS = (1, 7, 61, 311)
"""Chosen: user n follows the users n + step, so that followers are spread and everyone has four."""


def digest(password: str, salt: str) -> str:
    return hashlib.sha256((password + salt).encode()).hexdigest()


@data_set(APPLICATION, "users")
@cache
def users() -> list[dict[str, Any]]:
    records = []
    for number in range(USERS):
        salt = hashlib.sha256(f"salt {number}".encode()).hexdigest()[:32]
        records.append(
            {
                "user_id": number,
                "first_name": f"first_name_{number}",
                "last_name": f"last_name_{number}",
                "username": f"username_{number}",
                "salt": salt,
                "password": digest(f"password_{number}", salt),
            }
        )
    return records


@data_set(APPLICATION, "graph")
@cache
def graph() -> list[dict[str, Any]]:
    return [
        {
            "user_id": number,
            "followers": [{"user_id": (number - step) % USERS} for step in _STEPS],
            "followees": [{"user_id": (number + step) % USERS} for step in _STEPS],
        }
        for number in range(USERS)
    ]
