"""Files of Hotel Reservation; its class is in `srearena.service.apps.hotelres`."""
