"""Sources of load that are programs of their own: a container that sends requests to one address, of a given mix."""

from __future__ import annotations

from collections.abc import Sequence

from srearena.application_model.schema import Dependency, Driving, ProgramModel, Step, Task
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.traffic.driving import Driver
from srearena.cluster.embedded.traffic.engine import Traffic
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.settings import Settings

CONNECT_TIMEOUT = 2.0
REQUEST_TIMEOUT = 60.0

Mix = Sequence[tuple[str, str, float]]
"""Method, path and weight of each kind of request."""


def source_of_load(traffic: Traffic, process: Process, name: str, address: str, mix: Mix) -> Driver:
    """The container's source of load; one that is there already with the same mix goes on."""
    main = process.container.main
    assert main is not None
    tasks = [
        Task(weight=weight, requests=[Step(call=f"target {method} {path}", span="")]) for method, path, weight in mix
    ]
    driving = Driving(rate=0, tasks=tasks)
    known = traffic.drivers.get(main)
    if known is not None and known.driving == driving and known.address == address:
        return known
    target = Dependency(address=address, timeout=REQUEST_TIMEOUT, connect_timeout=CONNECT_TIMEOUT)
    model = ProgramModel(
        name=name, runtime="cpp", traced=False, dependencies={"target": target}, drives=driving, memory=12 * 1024**2
    )
    station = traffic.network.fabric.stations.pods[str(process.container.host.pod["metadata"]["uid"])]
    instance = Instance(main, station, model, Settings({}))
    driver = Driver(instance, driving, process.clock, process.clock.now, address=address, resting=True)
    traffic.drive(driver)
    return driver
