"""Requests to the application's public host name are served, over HTTPS with a certificate that is not expired.

Why it cannot be gamed: a pod of the harness sends requests for the host name to the ingress controller, over HTTPS and
HTTP, and checks the presented certificate by the cluster's time. Deleting the Ingress or the workload leaves requests
unserved; deleting only the certificate leaves the controller's default one, which is for another name; serving HTTP
next to an expired certificate does not help HTTPS clients. A certificate of another authority is accepted, and so is
serving the name without TLS at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from cryptography import x509

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.probing import ProbeFailed, run_probe

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_CURL = "curlimages/curl:8.5.0"
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Observation:
    certificate: x509.Certificate | None
    """The certificate presented over HTTPS, if it is for the host name."""
    secure: frozenset[str]
    """The paths with correct responses over HTTPS."""
    plain: frozenset[str]


class PublicName(Check):
    """The paths that the host name served before are served again."""

    name = "public-name"

    def __init__(self, host: str, controller: str, namespace: str) -> None:
        self._host = host
        self._controller = controller
        self._namespace = namespace

    def record_baseline(self, problem: Problem) -> list[str]:
        return sorted(self._observe(problem).secure)

    def complaints(self, problem: Problem) -> list[str]:
        try:
            observation = self._observe(problem)
        except ProbeFailed as failed:
            return [str(failed)]
        now = datetime.fromisoformat(problem.kubernetes.now())
        certificate = observation.certificate
        if certificate is not None and not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            until = f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M}"
            return [f"https://{self._host} presents a certificate that expired at {until}"]
        scheme, answered = ("http", observation.plain) if certificate is None else ("https", observation.secure)
        missing = [path for path in self.baseline_value(problem) or () if path not in answered]
        return [f"{path} does not get the expected response at {scheme}://{self._host}" for path in missing]

    def _observe(self, problem: Problem) -> _Observation:
        service = problem.kubernetes.find("services", self._controller, self._namespace)
        if service is None:
            raise ProbeFailed(f"there is no Service {self._controller} in {self._namespace}")
        frontend = problem.app.frontend
        requests = [one for one in frontend.requests if one.method == "GET"] if frontend else []
        address = service["spec"]["clusterIP"]
        curl = f"curl -sk --max-time 10 --resolve {self._host}:443:{address} --resolve {self._host}:80:{address}"
        lines = [f"{curl} -o /dev/null -w '%{{certs}}' https://{self._host}/ || true"]
        for one in requests:
            for scheme in ("https", "http"):
                lines.append(f"echo; echo 'asked {scheme} {one.path}'")
                lines.append(f"{curl} -w '\\nstatus %{{http_code}}' '{scheme}://{self._host}{one.path}' || true")
        head, *answers = f"\n{run_probe(problem, chr(10).join(lines), image=_CURL)}".split("\nasked ")
        responses = dict(answer.partition("\n")[::2] for answer in answers)

        def answered(scheme: str) -> frozenset[str]:
            texts = [(one, responses.get(f"{scheme} {one.path}", "").rpartition("\nstatus ")) for one in requests]
            return frozenset(
                one.path
                for one, (text, _, code) in texts
                if code.strip().isdecimal() and one.matches(int(code.strip()), text)
            )

        return _Observation(self._certificate_in(head), answered("https"), answered("http"))

    def _certificate_in(self, text: str) -> x509.Certificate | None:
        """The first certificate in a text, if it is for the host name."""
        match = _PEM.search(text)
        if match is None:
            return None
        try:
            certificate = x509.load_pem_x509_certificate(match[0].encode())
            alternative_names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names = alternative_names.get_values_for_type(x509.DNSName)
        except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):  # also where it cannot be read
            return None
        wildcard = "*." + self._host.partition(".")[2]
        return certificate if {self._host, wildcard} & set(names) else None
