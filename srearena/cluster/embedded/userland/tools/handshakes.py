"""TLS handshakes as curl tells them with -v, and the words with which it turns away."""

from __future__ import annotations

from datetime import UTC, datetime

from srearena.cluster.embedded.machine.networking.certificates import Flaw, TlsIdentity

_STORE = "/etc/ssl/certs"
_HELP = (
    "\nMore details here: https://curl.se/docs/sslcerts.html\n\ncurl failed to verify the legitimacy of the server and "
    "therefore could not\nestablish a secure connection to it. To learn more about this situation and\nhow to fix it, "
    "please visit the web page mentioned above."
)
_ALERTS = {Flaw.EXPIRED: "certificate expired (557)", Flaw.EARLY: "certificate expired (557)"}


def refusal(flaw: Flaw, host: str) -> str:
    """Why curl does not go on."""
    if flaw is Flaw.NAME:
        return f"SSL: no alternative certificate subject name matches target host name '{host}'"
    return f"SSL certificate problem: {flaw}"


def refusal_with_help(flaw: Flaw, host: str) -> str:
    return refusal(flaw, host) + _HELP


def handshake_text(
    identity: TlsIdentity, host: str, flaw: Flaw | None, *, authorities: str = "", insecure: bool = False
) -> str:
    """The lines of -v between the connection and the request; `authorities` is the file given for them."""
    lines = ["ALPN: curl offers h2,http/1.1", _out("handshake, Client hello (1)")]
    if not insecure:
        lines += [f" CAfile: {authorities or _STORE + '/ca-certificates.crt'}"]
        lines += [f" CApath: {_STORE if not authorities else 'none'}"]
    lines += [_in("handshake, Server hello (2)"), _in("handshake, Encrypted Extensions (8)")]
    lines += [_in("handshake, Certificate (11)")]
    if flaw is not None and flaw is not Flaw.NAME and not insecure:
        lines += [_out(f"alert, {_ALERTS.get(flaw, 'unknown CA (560)')}")]
        return _written([*lines, refusal(flaw, host), "Closing connection"])
    lines += [_in("handshake, CERT verify (15)"), _in("handshake, Finished (20)")]
    lines += [_out("change cipher, Change cipher spec (1)"), _out("handshake, Finished (20)")]
    lines += ["SSL connection using TLSv1.3 / TLS_AES_256_GCM_SHA384 / X25519 / id-ecPublicKey"]
    lines += ["ALPN: server accepted http/1.1", "Server certificate:", f" subject: {identity.subject}"]
    lines += [f" start date: {_date(identity.starts_at)}", f" expire date: {_date(identity.expires_at)}"]
    if not insecure:
        if flaw is Flaw.NAME:
            lines += [f" subjectAltName does not match {host}", refusal(flaw, host), "Closing connection"]
            return _written(lines)
        lines += [f' subjectAltName: host "{host}" matched cert\'s "{_matched(identity, host)}"']
    lines += [f" issuer: {identity.issuer}"]
    if flaw is None or flaw is Flaw.NAME:
        lines += [" SSL certificate verify ok."]
    else:
        lines += [f" SSL certificate verify result: {flaw} ({flaw.number}), continuing anyway."]
    return _written(lines)


def _matched(identity: TlsIdentity, host: str) -> str:
    return host if host in identity.names else "*." + host.partition(".")[2]


def _out(text: str) -> str:
    return f"TLSv1.3 (OUT), TLS {text}:"


def _in(text: str) -> str:
    return f"TLSv1.3 (IN), TLS {text}:"


def _date(moment: float) -> str:
    if moment == float("inf"):
        return "Dec 31 23:59:59 9999 GMT"
    return datetime.fromtimestamp(moment, UTC).strftime("%b %e %H:%M:%S %Y GMT")


def _written(lines: list[str]) -> str:
    return "".join(f"* {line}\n" for line in lines)
