"""Load generators: a container that sends a mix of requests to one address."""

from __future__ import annotations

from collections.abc import Sequence

from srearena.application_model.schema import Dependency, Driving, ProgramModel, Step, Task
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.traffic.engine import Traffic
from srearena.cluster.embedded.traffic.load import Driver
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.settings import Settings

CONNECT_TIMEOUT = 2.0
"""Chosen: wrk2 and wlgen report a host as unreachable within seconds."""
REQUEST_TIMEOUT = 60.0
"""Chosen: longer than the timeouts of the applications, so that they and not the generator give up first."""

Mix = Sequence[tuple[str, str, float]]
"""Method, path and weight of each kind of request."""


def load_driver(traffic: Traffic, process: Process, name: str, address: str, mix: Mix) -> Driver:
    """Return the load driver of a container; an existing one with the same mix is kept."""
    main = process.container.main
    assert main is not None
    tasks = [
        Task(weight=weight, requests=[Step(call=f"target {method} {path}", span="")]) for method, path, weight in mix
    ]
    driving = Driving(rate=0, tasks=tasks)
    existing = traffic.drivers.get(main)
    if existing is not None and existing.driving == driving and existing.address == address:
        return existing
    target = Dependency(address=address, timeout=REQUEST_TIMEOUT, connect_timeout=CONNECT_TIMEOUT)
    model = ProgramModel(
        name=name, runtime="cpp", traced=False, dependencies={"target": target}, drives=driving, memory=12 * 1024**2
    )
    host = traffic.network.fabric.hosts.pods[str(process.container.host.pod["metadata"]["uid"])]
    instance = Instance(main, host, model, Settings({}))
    driver = Driver(instance, driving, process.clock, process.clock.now, address=address, paused=True)
    traffic.add_driver(driver)
    return driver
