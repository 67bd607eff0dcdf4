"""An admission webhook in the cluster whose responses a test decides, with a certificate authority of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, ClassVar

from srearena.cluster import Cluster
from srearena.cluster.embedded.machine.images.catalogue import register_images
from srearena.cluster.embedded.machine.networking.certificates import identity_of
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import stop_signal, until_stopped
from srearena.generators.certificates import Authority
from srearena.service.kubernetes import Kubernetes

Review = dict[str, Any]
Answer = Callable[[Review], Review]
"""From the request of an AdmissionReview to its response."""

Relay = Callable[[str, bytes], bytes]
"""From the path and the body of a request to the body of its answer."""

NAMESPACE, NAME, IMAGE = "guard-system", "guard", "acme/guard"
HOST = f"{NAME}.{NAMESPACE}.svc"
register_images(f"docker.io/{IMAGE}", tags=["1.0"])
_SINCE = datetime(2020, 1, 1, tzinfo=UTC)


def allow(request: Review) -> Review:
    return {"uid": request["uid"], "allowed": True}


def deny(message: str, code: int = 403) -> Answer:
    return lambda request: {"uid": request["uid"], "allowed": False, "status": {"message": message, "code": code}}


def patch(*operations: dict[str, Any]) -> Answer:
    document = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": document}


async def _elsewhere(process: Process, relay: Relay, request: HttpRequest) -> bytes:
    """What a relay answers; time goes on meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(relay, request.path, request.body)
        while not found.done():
            await process.sleep(0.01)
        return found.result()


def _authority(name: str = "webhook-ca") -> Authority:
    return Authority(name, "s", _SINCE)


def bundle_of(authority: str) -> str:
    """The `caBundle` of an authority."""
    return base64.b64encode(_authority(authority).pem.encode()).decode()


@program(IMAGE)
class Guard(Program):
    """Responds to admission reviews as the running test's `WebhookServer` says."""

    entrypoint: ClassVar[tuple[str, ...]] = ("/guard",)
    base = "distroless"
    binaries = ("/guard",)
    server: ClassVar[WebhookServer]

    async def run(self, process: Process) -> int:
        issued = _authority().issue(HOST, _SINCE, _SINCE + timedelta(days=7000))
        identity = identity_of(issued.certificate.encode(), issued.key.encode())

        async def answer(request: HttpRequest) -> HttpResponse:
            if self.server.relay is not None:
                body = await _elsewhere(process, self.server.relay, request)
                return HttpResponse(200, body, {"Content-Type": "application/json"})
            review = json.loads(request.body)
            while self.server.delays_replies:
                await process.sleep(1.0)
            self.server.requests.append(review["request"])
            reply = {**review, "response": self.server.answer(review["request"])}
            del reply["request"]
            return HttpResponse(200, json.dumps(reply).encode(), {"Content-Type": "application/json"})

        stop = stop_signal(process)
        listener = process.container.namespace.listen(process, 8443, http=answer, tls=identity)
        await until_stopped(process, stop, [listener])
        return 0


class WebhookServer:
    """Answers every review with `answer`, and none while it `delays_replies`."""

    def __init__(self, cluster: Cluster) -> None:
        self.answer: Answer = allow
        self.requests: list[Review] = []
        self.delays_replies = False
        self.relay: Relay | None = None
        """Answers instead of `answer`, in a thread of its own: a program outside of the cluster, for example."""
        self._cluster = cluster
        self.url = f"https://{HOST}:443/review"
        service = {"namespace": NAMESPACE, "name": NAME, "path": "/review"}
        self.client_config: dict[str, Any] = {"service": service, "caBundle": bundle_of("webhook-ca")}

    def __enter__(self) -> WebhookServer:
        Guard.server = self
        labels = {"app": NAME}
        meta = {"name": NAME, "namespace": NAMESPACE, "labels": labels}
        ports = [{"port": 443, "targetPort": 8443}]
        service = {"selector": labels, "ports": ports}
        pod = {"containers": [{"name": NAME, "image": f"{IMAGE}:1.0"}]}
        with Kubernetes.of(self._cluster) as api:
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            api.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service}, NAMESPACE)
            self._cluster.wait(2)
            api.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod}, NAMESPACE)
        self._cluster.wait(30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.delays_replies = False
