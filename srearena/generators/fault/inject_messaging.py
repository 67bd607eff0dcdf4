"""Faults in messaging: records that a broker or a consumer cannot handle."""

from __future__ import annotations

from srearena.generators.fault.edits import CompositeFault
from srearena.generators.fault.pod_templates import pod_spec, set_variable, workload_edit
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import Command, Pause
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj


@fault("kafka_producer_leak")
def producer_leak(bed: Testbed, service: str, broker: str = "kafka", megabytes: int = 10) -> Fault:
    """A sidecar of a producer sends huge records continuously, and the broker is configured to accept them."""
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

    return CompositeFault(workload_edit(bed, broker, take), workload_edit(bed, service, add))


@fault("truncated_record")
def truncated_record(bed: Testbed, service: str, topic: str, group: str) -> Fault:
    """A truncated record is written that no consumer can parse; recovery skips it."""
    tools, broker = "/opt/kafka/bin", "--bootstrap-server localhost:9092"
    do = f"""echo '{{"order": 4711, "items": ' | {tools}/kafka-console-producer.sh {broker} --topic {topic}"""
    skip = f"--group {group} --topic {topic} --reset-offsets --shift-by 1 --execute"
    undo = f"{tools}/kafka-consumer-groups.sh {broker} {skip}"
    return CompositeFault(Command(bed, "kafka", ["sh", "-c", do], ["sh", "-c", undo]), Pause(bed, 60))
