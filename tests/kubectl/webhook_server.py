"""An admission webhook outside the cluster: real HTTPS on loopback, with a certificate authority of its own."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Review = dict[str, Any]
Answer = Callable[[Review], Review]
"""From the request of an AdmissionReview to its response."""


def allow(request: Review) -> Review:
    return {"uid": request["uid"], "allowed": True}


def deny(message: str, code: int = 403) -> Answer:
    return lambda request: {"uid": request["uid"], "allowed": False, "status": {"message": message, "code": code}}


def patch(*operations: dict[str, Any]) -> Answer:
    document = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": document}


class Authority:
    """A certificate authority, and certificates it signs for loopback."""

    def __init__(self, name: str = "webhook-ca") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        certificate = builder.sign(self._key, hashes.SHA256())
        self.bundle = base64.b64encode(certificate.public_bytes(serialization.Encoding.PEM)).decode()

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    def certify(self, path: Path) -> Path:
        """Write a key and a certificate for 127.0.0.1 into one file."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook")])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        certificate = (
            self._builder(subject, key.public_key())
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
        return path


class WebhookServer:
    """Answers every review with `answer`, once `held` is set."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority()
        self.answer: Answer = allow
        self.requests: list[Review] = []
        self.held = threading.Event()
        self.held.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.authority.certify(directory / "webhook.pem"))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_address[1]}/review"

    def _handler(server) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.held.wait()
                server.requests.append(review["request"])
                answer = {**review, "response": server.answer(review["request"])}
                del answer["request"]
                body = json.dumps(answer).encode()
                try:
                    self.send_response(200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    return  # whoever asked has lost patience

            def log_message(self, format: str, *args: object) -> None:
                """Tests are quiet."""

        return Handler

    def __enter__(self) -> WebhookServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.held.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
