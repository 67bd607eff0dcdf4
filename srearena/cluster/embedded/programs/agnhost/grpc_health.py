"""agnhost grpc-health-checking: a gRPC health service that a request makes fail."""

from __future__ import annotations

from srearena.cluster.embedded.machine.networking.sockets import GrpcHealth, HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.commands import MEMORY, command, log_time
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped


@command("grpc-health-checking")
async def grpc_health_checking(process: Process, flags: Flags) -> int:
    port, http_port = flags.port("port", 5000), flags.port("http-port", 8080)
    service, delay = flags.get("service"), float(flags.get("delay-unhealthy-sec", "-1"))
    forced: list[bool] = []

    async def health(requested_service: str) -> GrpcHealth:
        if requested_service != service:
            return GrpcHealth.SERVICE_UNKNOWN
        late = delay >= 0 and process.clock.now - process.started_at >= delay
        return GrpcHealth.NOT_SERVING if late or (forced and forced[-1]) else GrpcHealth.SERVING

    async def control(request: HttpRequest) -> HttpResponse:
        verdicts = {"/make-not-serving": True, "/make-serving": False}
        if request.path not in verdicts:
            return HttpResponse.text("404 page not found\n", 404)
        forced.append(verdicts[request.path])
        await process.error(f"{log_time(process)} Mark as {'unhealthy' if forced[-1] else 'healthy'}\n")
        return HttpResponse.text(f"{process.clock.now - process.started_at:g}s")

    stop = stop_signal(process)
    process.set_memory(MEMORY)
    namespace = process.container.namespace
    try:
        listeners = [
            namespace.listen(process, http_port, http=control),
            namespace.listen(process, port, grpc_health=health),
        ]
    except OSError as error:
        await process.error(f"{log_time(process)} {go_bind_error(port, error)}\n")
        return 1
    when = log_time(process)
    await process.error(
        f"{when} Http server starting to listen on :{http_port}\n{when} gRPC server starting to listen on :{port}\n"
    )
    await until_stopped(process, stop, listeners)
    return 0
