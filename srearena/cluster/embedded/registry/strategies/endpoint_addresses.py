"""Addresses that traffic may be sent to."""

from __future__ import annotations

from ipaddress import ip_address

from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems

_LOOPBACK = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
_LINK_LOCAL = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
_MULTICAST = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"


def endpoint_ip(problems: Problems, path: str, address: str) -> None:
    """Refuse addresses that mean the sender itself or its link."""
    if not checks.is_ip(address):
        problems.append(FieldError.invalid(path, address, "must be a valid IP address"))
        return
    parsed = ip_address(address)
    if parsed.is_unspecified:
        problems.append(FieldError.invalid(path, address, f"may not be unspecified ({address})"))
    if parsed.is_loopback:
        problems.append(FieldError.invalid(path, address, _LOOPBACK))
    if parsed.is_link_local:
        problems.append(FieldError.invalid(path, address, _LINK_LOCAL))
    if address.startswith(("224.0.0.", "ff02:")):
        problems.append(FieldError.invalid(path, address, _MULTICAST))
