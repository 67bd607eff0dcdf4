"""openssl: what people ask it in a cluster: the certificate that a server presents, and what a certificate says."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from srearena.cluster.embedded.machine.networking.certificates import Flaw, TlsIdentity
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.inputs import whole
from srearena.cluster.embedded.userland.tools.registry import tool

VERSION = "OpenSSL 3.3.2 3 Sep 2024 (Library: OpenSSL 3.3.2 3 Sep 2024)"
_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
_TIMEOUT = 60.0
_YEAR = timedelta(days=365)
_ERRNO = {Outcome.REFUSED: (111, "Connection refused"), Outcome.TIMEOUT: (110, "Operation timed out")}
_ERRNO |= {Outcome.NO_ROUTE: (113, "Host is unreachable"), Outcome.UNREACHABLE: (101, "Network unreachable")}
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)


@tool("openssl")
async def openssl(process: Process, args: list[str]) -> int:
    command, *rest = args or [""]
    if command == "version":
        await process.write(f"{VERSION}\n")
        return 0
    if command == "s_client":
        return await _s_client(process, rest)
    if command == "x509":
        return await _x509(process, rest)
    if command == "rand" and rest and rest[-1].isdigit() and int(rest[-1]) <= 1_000_000:
        data = process.container.random.randbytes(int(rest[-1]))
        await process.write(f"{data.hex()}\n" if "-hex" in rest else data)
        return 0
    await process.error(f"Invalid command '{command}'; type \"help\" for a list.\n" if command else "")
    return 1


def _value(args: list[str], name: str) -> str:
    return args[args.index(name) + 1] if name in args[:-1] else ""


async def _s_client(process: Process, args: list[str]) -> int:
    place = _value(args, "-connect") or "localhost:4433"
    host, _, port = place.rpartition(":")
    if not host or not port.isdigit():
        await process.error("s_client: -connect argument or target parameter malformed or ambiguous\n")
        return 1
    name = _value(args, "-servername") or ("" if host.replace(".", "").isdigit() else host)
    presented: list[TlsIdentity] = []

    def examines(identity: TlsIdentity) -> bool:
        presented.append(identity)
        return False

    request = HttpRequest("HEAD", "/", {}, tls=True, server_name=name, accepts=examines)
    result = await process.container.network.http(host, int(port), request, connect_timeout=_TIMEOUT, timeout=_TIMEOUT)
    if not presented:
        return await _no_handshake(process, host, result.outcome, connected=result.connected)
    bundle = _trusted(process, _value(args, "-CAfile"))
    identity = presented[-1]
    expected = _value(args, "-verify_hostname")
    flaw = identity.flaw(expected or (identity.names[0] if identity.names else ""), process.date, bundle)
    number, text = (flaw.number, str(flaw)) if flaw is not None else (0, "ok")
    await process.write(_session(_certificates(process, identity), number, text, every="-showcerts" in args))
    if flaw is not None and flaw is not Flaw.NAME:
        await process.error(f"depth=0 {_name(_certificates(process, identity)[0].subject)}\n")
        await process.error(f"verify error:num={number}:{text}\n")
    if "-verify_return_error" in args and number:
        return 1
    await process.write("DONE\n")
    return 0


async def _no_handshake(process: Process, host: str, outcome: Outcome, *, connected: bool) -> int:
    if outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
        where = "crypto/bio/bio_addr.c:738:Name does not resolve"
        await process.error(f"BIO_lookup_ex:system lib:{where}\nconnect:errno=22\n")
    elif connected or outcome in (Outcome.CONNECTED, Outcome.PROTOCOL_ERROR):
        await process.write("CONNECTED(00000003)\n")
        await process.error("error:0A00010B:SSL routines:tls_validate_record_header:wrong version number\n")
        await process.write("---\nno peer certificate available\n---\n")
    else:
        number, text = _ERRNO.get(outcome, (104, "Connection reset by peer"))
        await process.error(
            f"error:800000{number:02X}:system library:BIO_connect:{text}:crypto/bio/bio_sock2.c:178:calling connect()\n"
            f"connect:errno={number}\n"
        )
    return 1


def _trusted(process: Process, path: str) -> bytes:
    try:
        return process.files.read_bytes(path or _BUNDLE)
    except OSError:
        return b""


def _certificates(process: Process, identity: TlsIdentity) -> list[x509.Certificate]:
    if identity.chain:
        return list(x509.load_pem_x509_certificates(identity.chain))
    return [_synthetic(identity, process.container.host.kernel.booted_at)]


def _synthetic(identity: TlsIdentity, booted: float) -> x509.Certificate:
    """A certificate of a component of the cluster, whose identity has none; the same each time."""
    key = Ed25519PrivateKey.from_private_bytes(sha256(identity.issuer.encode()).digest())
    begins = datetime.fromtimestamp(int(identity.starts_at or booted), UTC)
    known = identity.expires_at < float("inf")
    ends = datetime.fromtimestamp(int(identity.expires_at), UTC) if known else begins + _YEAR
    names = [x509.DNSName(name) for name in identity.names if name.isascii()]
    builder = (
        x509.CertificateBuilder()
        .subject_name(_common_name(identity.subject or (identity.names[0] if identity.names else "server")))
        .issuer_name(_common_name(identity.issuer or "ca"))
        .public_key(key.public_key())
        .serial_number(int.from_bytes(sha256(repr(identity.names).encode()).digest()[:8]) | 1)
        .not_valid_before(begins)
        .not_valid_after(ends)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, None)


def _common_name(text: str) -> x509.Name:
    plain = text.partition("CN=")[2].partition(",")[0] or text
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, plain[:64])])


def _session(chain: list[x509.Certificate], number: int, text: str, *, every: bool) -> str:
    lines = ["CONNECTED(00000003)", "---", "Certificate chain"]
    for place, one in enumerate(chain):
        lines += [f" {place} s:{_name(one.subject)}", f"   i:{_name(one.issuer)}"]
        dates = f"{_date(one.not_valid_before_utc)}; NotAfter: {_date(one.not_valid_after_utc)}"
        lines += [f"   v:NotBefore: {dates}", *([_pem(one)] if every else [])]
    own = chain[0]
    lines += ["---", "Server certificate", *([] if every else [_pem(own)])]
    lines += [f"subject={_name(own.subject)}", f"issuer={_name(own.issuer)}", "---"]
    lines += ["No client certificate CA names sent", "Peer signing digest: SHA256", "Server Temp Key: X25519, 253 bits"]
    verification = "Verification: OK" if not number else f"Verification error: {text}"
    lines += ["---", verification, "---", "New, TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384", "Compression: NONE"]
    return "\n".join([*lines, "Early data was not sent", f"Verify return code: {number} ({text})", "---"]) + "\n"


def _pem(one: x509.Certificate) -> str:
    return one.public_bytes(Encoding.PEM).decode().rstrip()


def _name(name: x509.Name) -> str:
    return ", ".join(f"{part.rfc4514_attribute_name}={part.value!s}" for part in name)


def _date(moment: datetime) -> str:
    return f"{moment:%b} {moment.day:2d} {moment:%H:%M:%S %Y} GMT"


async def _x509(process: Process, args: list[str]) -> int:
    path = _value(args, "-in")
    try:
        data = process.files.read_bytes(path) if path else await whole(process, process.fd(0))
    except OSError as error:
        await process.error(f"Could not open file or uri for loading certificate from {path}: {error.strerror}\n")
        return 1
    found = _PEM.search(data)
    try:
        one = x509.load_pem_x509_certificate(found[0]) if found is not None else None
    except ValueError:
        one = None
    if one is None:
        await process.error(f"Could not find certificate from {path or '<stdin>'}\n")
        return 1
    for arg in args:
        await process.write(_certificate_field(one, arg))
    if "-ext" in args or "-text" in args:
        await process.write(_alternative_names(one))
    status = 0
    if "-checkend" in args:
        seconds = float(_value(args, "-checkend")) if _value(args, "-checkend").isdigit() else 0.0
        expires = one.not_valid_after_utc.timestamp() < process.date + seconds
        await process.write(f"Certificate will {'' if expires else 'not '}expire\n")
        status = int(expires)
    if "-noout" not in args:
        await process.write(_pem(one) + "\n")
    return status


def _certificate_field(one: x509.Certificate, arg: str) -> str:
    begins, ends = f"notBefore={_date(one.not_valid_before_utc)}\n", f"notAfter={_date(one.not_valid_after_utc)}\n"
    if arg in ("-startdate", "-enddate", "-dates"):
        return (begins if arg != "-enddate" else "") + (ends if arg != "-startdate" else "")
    if arg == "-text":
        return (
            "Certificate:\n    Data:\n        Version: 3 (0x2)\n"
            f"        Issuer: {_name(one.issuer)}\n        Validity\n"
            f"            Not Before: {_date(one.not_valid_before_utc)}\n"
            f"            Not After : {_date(one.not_valid_after_utc)}\n        Subject: {_name(one.subject)}\n"
        )
    if arg == "-fingerprint":
        return "SHA1 Fingerprint=" + one.fingerprint(SHA1()).hex(":").upper() + "\n"
    if arg == "-sha256":
        return "sha256 Fingerprint=" + one.fingerprint(SHA256()).hex(":").upper() + "\n"
    plain = {"-subject": f"subject={_name(one.subject)}", "-issuer": f"issuer={_name(one.issuer)}"}
    plain["-serial"] = f"serial={one.serial_number:X}"
    return f"{plain[arg]}\n" if arg in plain else ""


def _alternative_names(one: x509.Certificate) -> str:
    try:
        names = one.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return "No extensions in certificate\n"
    listed = [f"DNS:{name}" for name in names.get_values_for_type(x509.DNSName)]
    listed += [f"IP Address:{address}" for address in names.get_values_for_type(x509.IPAddress)]
    return f"X509v3 Subject Alternative Name: \n    {', '.join(listed)}\n"
