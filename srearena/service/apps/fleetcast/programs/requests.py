"""The requests to FleetCast's backend: what they read and write in TiDB, and what they answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from random import Random
from typing import Any

from srearena.cluster.program_models import HttpRequest, HttpResponse
from srearena.cluster.program_models.application_data import Exchange, handles, load_sample

APPLICATION = "fleetcast"
_PROGRAM = "fleetcast-backend"
_SATELLITES = 100
_STATIONS = tuple(f"GS-{number}" for number in range(1, 8))
_OBSERVATIONS = 4
_SHOWN = 20
"""Contacts on a page, the newest first."""


def _json(value: object) -> HttpResponse:
    return HttpResponse(200, json.dumps(value, separators=(",", ":")).encode(), {"Content-Type": "application/json"})


def _time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S")


@handles(APPLICATION, _PROGRAM, "simulate")
def simulate(exchange: Exchange) -> HttpResponse:
    """Each antenna gets its next contact, and some satellites are observed."""
    random, now = exchange.random, exchange.now
    windows = []
    for station in _STATIONS:
        start = now + random.uniform(0, 600)
        windows.append(
            {
                "satellite_id": _satellite(random),
                "ground_station_id": station,
                "start_time": _time(start),
                "end_time": _time(start + random.uniform(120, 700)),
                "max_elevation": round(random.uniform(5, 90), 2),
            }
        )
    observations = [
        {
            "satellite_id": _satellite(random),
            "ground_station_id": random.choice(_STATIONS),
            "observed_at": _time(now),
            "latitude": round(random.uniform(-90, 90), 4),
            "longitude": round(random.uniform(-180, 180), 4),
            "altitude": round(random.uniform(400, 1200), 1),
            "elevation": round(random.uniform(0, 90), 2),
        }
        for _ in range(_OBSERVATIONS)
    ]
    exchange.mysql(_PROGRAM, "contact_windows", "tidb", "write").insert("contact_windows", windows)
    exchange.mysql(_PROGRAM, "telemetry", "tidb", "write").insert("telemetry", observations)
    return _json({"status": "simulation complete"})


def _satellite(random: Random) -> str:
    return f"SAT-{random.randint(1, _SATELLITES):03d}"


def _contacts(exchange: Exchange, station: str = "") -> list[dict[str, Any]]:
    columns = "satellite_id, ground_station_id, start_time, end_time, max_elevation"
    where, values = ("WHERE ground_station_id = ?", (station,)) if station else ("", ())
    statement = f"SELECT {columns} FROM satellite_sim.contact_windows {where} ORDER BY rowid DESC LIMIT {_SHOWN}"
    return exchange.mysql(_PROGRAM, "contact_windows", "tidb").select(statement, *values)


@handles(APPLICATION, _PROGRAM, "dashboard")
def dashboard(exchange: Exchange) -> HttpResponse:
    contacts = _contacts(exchange)
    [counted] = exchange.mysql(_PROGRAM, "telemetry", "tidb").select(
        "SELECT count(*) AS number FROM satellite_sim.telemetry"
    )
    return _json(
        {
            "satellites": _SATELLITES,
            "stations": len(_STATIONS),
            "contacts": contacts,
            "observations": counted["number"],
        }
    )


@handles(APPLICATION, _PROGRAM, "station")
def station(exchange: Exchange) -> HttpResponse:
    name = exchange.request.path.rpartition("/")[2]
    return _json({"station": name, "contacts": _contacts(exchange, name)})


@load_sample(APPLICATION, _PROGRAM, "simulate", every=5.0)
def scheduled_simulation(random: Random, session: int) -> HttpRequest:
    return HttpRequest("GET", "/api/simulate")
