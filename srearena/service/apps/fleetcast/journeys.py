"""What operators of FleetCast do from end to end."""

from __future__ import annotations

from srearena.service.journeys import Journey, JourneyFailed, Visitor


def simulate_contacts(visitor: Visitor) -> None:
    """A simulation adds contacts, which the dashboard and the pages of the antennas then show."""
    observations = _observations(visitor)
    done = visitor.send("GET", "/api/simulate")
    done.must(done.status == 200, "a simulation must run")
    if _observations(visitor) <= observations:
        raise JourneyFailed("GET /api/dashboard shows nothing of a simulation")
    for station in ("GS-1", "GS-5"):
        page = visitor.send("GET", f"/api/station/{station}")
        page.must(page.status == 200, "a station must be shown")
        contacts = page.document.get("contacts", []) if isinstance(page.document, dict) else []
        shown = {contact.get("ground_station_id") for contact in contacts}
        page.must(shown == {station}, f"the contacts of {station} must be shown, and no others")
    unknown = visitor.send("GET", f"/api/station/GS-{visitor.marker}")
    unknown.must(
        unknown.status >= 400 or not unknown.document.get("contacts"), "a station that does not exist has no contacts"
    )


def _observations(visitor: Visitor) -> int:
    page = visitor.send("GET", "/api/dashboard")
    page.must(page.status == 200, "the dashboard must be shown")
    number = page.document.get("observations") if isinstance(page.document, dict) else None
    page.must(isinstance(number, int), "the dashboard counts observations")
    return int(number or 0)


JOURNEYS = (Journey("simulate contacts", simulate_contacts),)
