"""Faults in messaging: producers that send a broker more than it can hold."""

from __future__ import annotations

from srearena.generators.fault.base import Fault, FaultInjector, FaultMaker, Together, fault
from srearena.generators.fault.inject_app import set_variable
from srearena.generators.fault.inject_virtual import pod_spec, workload_edit
from srearena.generators.fault.steps import Command, Pause
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

__all__ = ["FAULTS", "MessagingFaultInjector"]

FAULTS: dict[str, FaultMaker] = {}


class MessagingFaultInjector(FaultInjector):
    """Its microservices are producers."""

    faults = FAULTS


@fault(FAULTS, "kafka_producer_leak")
def producer_leak(bed: Testbed, service: str, broker: str = "kafka", megabytes: int = 10) -> Fault:
    """A second container beside a producer sends huge records without pause, and the broker is told to take them."""
    size = megabytes * 1024 * 1024

    def add(obj: Obj) -> None:
        command = (
            "while true; do /opt/kafka/bin/kafka-producer-perf-test.sh --topic order-exports --num-records 100000 "
            f"--record-size {size} --throughput 20 --producer-props bootstrap.servers={broker}:9092 "
            f"max.request.size={2 * size} buffer.memory={4 * size}; sleep 5; done"
        )
        sidecar = {
            "name": "order-creator",
            "image": "ghcr.io/open-telemetry/demo:2.2.0-kafka",
            "command": ["sh", "-c", command],
        }
        pod_spec(obj)["containers"].append(sidecar)

    def take(obj: Obj) -> None:
        set_variable(obj, "KAFKA_MESSAGE_MAX_BYTES", str(2 * size))

    return Together(workload_edit(bed, broker, take), workload_edit(bed, service, add))


@fault(FAULTS, "truncated_record")
def truncated_record(bed: Testbed, service: str, topic: str, group: str) -> Fault:
    """A record is written that ends in the middle, and can be read by nobody; undone by going on behind it."""
    tools, broker = "/opt/kafka/bin", "--bootstrap-server localhost:9092"
    do = f"""echo '{{"order": 4711, "items": ' | {tools}/kafka-console-producer.sh {broker} --topic {topic}"""
    skip = f"--group {group} --topic {topic} --reset-offsets --shift-by 1 --execute"
    undo = f"{tools}/kafka-consumer-groups.sh {broker} {skip}"
    return Together(Command(bed, "kafka", ["sh", "-c", do], ["sh", "-c", undo]), Pause(bed, 60))
