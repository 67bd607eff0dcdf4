"""What passengers of Train Ticket do from end to end."""

from __future__ import annotations

from typing import Any

from srearena.service.journeys import Answer, Journey, Visitor

_USER = {"username": "fdse_microservice", "password": "111111"}
_USER_ID = "4d2a46c7-71cb-4cf1-b5bb-b68406d9da6f"
_CONTACTS = "/api/v1/contactservice/contacts"


def _reply(answer: Answer) -> tuple[int, Any]:
    """Status and data of an answer."""
    answer.must(answer.status == 200, "an answer is expected")
    found = answer.document
    answer.must(isinstance(found, dict) and found.get("status") in (0, 1), "an answer has a status")
    return int(found["status"]), found.get("data")


def log_in(visitor: Visitor) -> None:
    """The right password is accepted, a wrong one refused."""
    answer = visitor.send("POST", "/api/v1/users/login", body=_USER)
    status, data = _reply(answer)
    answer.must(status == 1 and isinstance(data, dict) and bool(data.get("token")), "a token must be given")
    answer.must(data.get("userId") == _USER_ID, "the token must be for the user who logs in")
    wrong = visitor.send("POST", "/api/v1/users/login", body={**_USER, "password": f"{visitor.marker}"})
    wrong.must(wrong.status >= 400 or _reply(wrong)[0] == 0, "a wrong password must be refused")


def keep_a_contact(visitor: Visitor) -> None:
    """A contact is made once, found under its account and under its number, and gone when it is deleted."""
    account = f"7d2a46c7-71cb-4cf1-b5bb-{visitor.marker % 16**12:012x}"
    contact = {
        "accountId": account,
        "name": f"Passenger {visitor.marker}",
        "documentType": 1,
        "documentNumber": f"D{visitor.marker}",
        "phoneNumber": "5550100",
    }
    created = visitor.send("POST", _CONTACTS, body=contact)
    status, data = _reply(created)
    created.must(status == 1 and isinstance(data, dict) and bool(data.get("id")), "a contact must be made")
    number = data["id"]
    again = visitor.send("POST", _CONTACTS, body=contact)
    again.must(_reply(again)[0] == 0, "a contact that exists must be refused")
    listed = visitor.send("GET", f"{_CONTACTS}/account/{account}")
    shown = _reply(listed)[1]
    is_shown = isinstance(shown, list) and [(one.get("id"), one.get("name")) for one in shown]
    listed.must(is_shown == [(number, contact["name"])], "the contact must be listed, and no other")
    gone = visitor.send("DELETE", f"{_CONTACTS}/{number}")
    gone.must(_reply(gone)[0] == 1, "a contact must be deleted")
    missing = visitor.send("GET", f"{_CONTACTS}/{number}")
    missing.must(_reply(missing)[0] == 0, "a contact that was deleted must not be found")


def look_at_the_timetable(visitor: Visitor) -> None:
    """Routes and stops are listed, and a route can be asked for by its number; one that does not exist cannot."""
    answer = visitor.send("GET", "/api/v1/stationservice/stations")
    names = {station.get("name") for station in _reply(answer)[1] or ()}
    answer.must({"Shang Hai", "Su Zhou"} <= {str(name) for name in names}, "stations must be listed")
    answer = visitor.send("GET", "/api/v1/routeservice/routes")
    routes = _reply(answer)[1] or []
    answer.must(len(routes) >= 2, "routes must be listed")
    for route in routes[:2]:
        one = visitor.send("GET", f"/api/v1/routeservice/routes/{route.get('id')}")
        status, data = _reply(one)
        one.must(status == 1 and data == route, "a route must be shown as in the list")
    unknown = visitor.send("GET", f"/api/v1/routeservice/routes/none-{visitor.marker}")
    unknown.must(_reply(unknown)[0] == 0, "a route that does not exist must not be shown")


JOURNEYS = (
    Journey("log in", log_in),
    Journey("keep a contact", keep_a_contact),
    Journey("look at the timetable", look_at_the_timetable),
)
