"""Links of pages that come through a proxy of the API."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.api.proxies import with_prefixed_links

PREFIX = "/api/v1/namespaces/n/pods/p:80/proxy"


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (b'<a href="/rewriteme">test</a>', b'<a href="/api/v1/namespaces/n/pods/p:80/proxy/rewriteme">test</a>'),
        (b"<img class='x' src='/i.png'>", b"<img class='x' src='/api/v1/namespaces/n/pods/p:80/proxy/i.png'>"),
        (b'<a href="relative">', b'<a href="relative">'),
        (b'<a href="//other.example/x">', b'<a href="//other.example/x">'),
        (b'<a href="https://other.example/x">', b'<a href="https://other.example/x">'),
        (b'<a href="/api/v1/namespaces/n/pods/p:80/proxy/x">', b'<a href="/api/v1/namespaces/n/pods/p:80/proxy/x">'),
        (b"no link: href=/x", b"no link: href=/x"),
    ],
)
def test_links_to_the_same_server_lead_through_the_proxy(page: bytes, shown: bytes) -> None:
    assert with_prefixed_links(page, PREFIX) == shown
