"""Visitors who come by the application's public name are served, and over HTTPS are shown a certificate in date.

Why it cannot be gamed: a pod of the harness asks the ingress controller under the name, over HTTPS and without, and
looks at the certificate it is really shown, by the cluster's time. Taking the Ingress or the workload away leaves
visitors unserved; taking away only the certificate leaves them with the controller's own, made out to nobody's name;
leaving HTTP open beside a certificate that has expired does not help those who come by HTTPS. A certificate from
another authority is as good as the first, and so is to serve the name without TLS at all.
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
class _Seen:
    certificate: x509.Certificate | None
    """What is shown over HTTPS, where it is made out to the name."""
    secure: frozenset[str]
    """The paths that are answered well over HTTPS, whoever answers."""
    plain: frozenset[str]


class PublicName(Check):
    name = "public-name"

    def __init__(self, host: str, controller: str, namespace: str) -> None:
        self._host = host
        self._controller = controller
        self._namespace = namespace

    def record_baseline(self, problem: Problem) -> list[str]:
        return sorted(self._seen(problem).secure)

    def complaints(self, problem: Problem) -> list[str]:
        try:
            seen = self._seen(problem)
        except ProbeFailed as failed:
            return [str(failed)]
        now = datetime.fromisoformat(problem.kubernetes.now())
        shown = seen.certificate
        if shown is not None and not shown.not_valid_before_utc <= now <= shown.not_valid_after_utc:
            until = f"{shown.not_valid_after_utc:%Y-%m-%d %H:%M}"
            return [f"visitors of https://{self._host} are shown a certificate that was good until {until}"]
        scheme, answered = ("http", seen.plain) if shown is None else ("https", seen.secure)
        missing = [path for path in self.remembered(problem) or () if path not in answered]
        return [f"{path} is not answered as it should be at {scheme}://{self._host}" for path in missing]

    def _seen(self, problem: Problem) -> _Seen:
        service = problem.kubernetes.find("services", self._controller, self._namespace)
        if service is None:
            raise ProbeFailed(f"there is no Service {self._controller} in {self._namespace}")
        door = problem.app.frontend
        requests = [one for one in door.requests if one.method == "GET"] if door else []
        address = service["spec"]["clusterIP"]
        curl = f"curl -sk --max-time 10 --resolve {self._host}:443:{address} --resolve {self._host}:80:{address}"
        lines = [f"{curl} -o /dev/null -w '%{{certs}}' https://{self._host}/ || true"]
        for one in requests:
            for scheme in ("https", "http"):
                lines.append(f"echo; echo 'asked {scheme} {one.path}'")
                lines.append(f"{curl} -w '\\nstatus %{{http_code}}' '{scheme}://{self._host}{one.path}' || true")
        head, *answers = f"\n{run_probe(problem, chr(10).join(lines), image=_CURL)}".split("\nasked ")
        said = dict(answer.partition("\n")[::2] for answer in answers)

        def answered(scheme: str) -> frozenset[str]:
            texts = [(one, said.get(f"{scheme} {one.path}", "").rpartition("\nstatus ")) for one in requests]
            return frozenset(one.path for one, (text, _, code) in texts if one.matches(int(code.strip() or 0), text))

        return _Seen(self._made_out(head), answered("https"), answered("http"))

    def _made_out(self, text: str) -> x509.Certificate | None:
        found = _PEM.search(text)
        if found is None:
            return None
        certificate = x509.load_pem_x509_certificate(found[0].encode())
        try:
            named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            names = named.get_values_for_type(x509.DNSName)
        except x509.ExtensionNotFound:
            return None
        wild = "*." + self._host.partition(".")[2]
        return certificate if {self._host, wild} & set(names) else None
