"""Names: what CoreDNS makes of a Corefile, and what it answers."""
