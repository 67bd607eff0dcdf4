"""A poison message: a record that its consumer cannot parse and that blocks all later ones."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.conductor.oracles.checks import Check
from srearena.conductor.oracles.checks.broker import run_tool
from srearena.conductor.oracles.checks.probing import ProbeFailed
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.generators.fault.actors import deployment
from srearena.service.kubernetes import Obj

_TOOLS, _SOURCE, _RESULT, _GROUP = "/opt/kafka/bin", "orders-fulfillment", "orders-processed", "fulfillment"
_PRODUCER, _VALIDATOR = "fulfillment-feed", "fulfillment-validator"
_STEP, _TIMEOUT, _ENOUGH = 15.0, 300.0, 3
_FEED = f"""\
tools={_TOOLS}; broker="--bootstrap-server kafka:9092"
for topic in {_SOURCE} {_RESULT}; do
  $tools/kafka-topics.sh $broker --create --if-not-exists --topic $topic --partitions 1 || exit 1
done
number=0
while true; do
  number=$((number + 1))
  echo "{{\\"order\\": $number, \\"items\\": 2}}" | $tools/kafka-console-producer.sh $broker --topic {_SOURCE}
  sleep 8
done"""
_VALIDATE = f"""\
tools={_TOOLS}; broker="--bootstrap-server kafka:9092"
while true; do
  at=$($tools/kafka-consumer-groups.sh $broker --describe --group {_GROUP} | awk '$2 == "{_SOURCE}" {{ print $4 }}')
  at=${{at:-0}}
  record=$($tools/kafka-console-consumer.sh $broker --topic {_SOURCE} --partition 0 --offset "$at" --max-messages 1 \
--timeout-ms 5000 2>/dev/null)
  if [ -z "$record" ]; then sleep 1; continue; fi
  case "$record" in
    "{{"*"}}") echo "offset $at: valid" ;;
    *) echo "offset $at: unexpected end of JSON input" >&2; exit 1 ;;
  esac
  echo "$record" | $tools/kafka-console-producer.sh $broker --topic {_RESULT}
  $tools/kafka-consumer-groups.sh $broker --group {_GROUP} --topic {_SOURCE} --reset-offsets \
--to-offset $((at + 1)) --execute >/dev/null
done"""


class Progress(Check):
    """New records pass through the consumer in time, and no earlier record has been deleted.

    Why it cannot be gamed: the broker reports its records, to tools of the harness (`broker`). A topic that was deleted
    or emptied to remove one record, or a broker that lost its data in a restart, does not have them; a stopped consumer
    produces no output.
    """

    name = "progress"

    def record_baseline(self, problem: Problem) -> int:
        return self._offset(problem, _SOURCE)

    def complaints(self, problem: Problem) -> list[str]:
        try:
            if self._lost(problem):
                return [f"records of {_SOURCE} are deleted"]
            began, waited = self._offset(problem, _RESULT), 0.0
            while self._offset(problem, _RESULT) < began + _ENOUGH:
                if waited >= _TIMEOUT:
                    return [f"no new records arrive at {_RESULT}"]
                problem.cluster.wait(_STEP)
                waited += _STEP
        except (ProbeFailed, ValueError) as failed:
            return [f"the broker cannot be queried: {failed}"]
        return []

    def _lost(self, problem: Problem) -> bool:
        if self._offset(problem, _SOURCE) < (self.baseline_value(problem) or 0):
            return True
        read = ["kafka-console-consumer.sh", "--topic", _SOURCE, "--from-beginning", "--timeout-ms", "5000"]
        records = run_tool(problem, *read).splitlines()
        return problem.fault_injected and all(record.endswith("}") for record in records)

    def _offset(self, problem: Problem, topic: str) -> int:
        return int(run_tool(problem, "kafka-get-offsets.sh", "--topic", topic).strip().rpartition(":")[2])


@problem("kafka_poison_pill_hol_block", app="astronomy_shop", service=_VALIDATOR)
class PoisonPill(OriginProblem):
    """Adds a feed of orders and a validator that forwards the records it can parse."""

    family = "kafka_poison_pill"
    level = "application"
    difficulty = "hard"
    fault = "truncated_record"
    also_changed = (f"KafkaTopic/{_SOURCE}",)
    fault_type = "Code Defect"
    explanation = (
        f"A record of the topic {_SOURCE} is cut off in the middle: {{service}} ends when it comes to it, before it "
        "has noted how far it is, and begins with the same record again. All that follow wait."
    )
    remedy = f"""\
kubectl -n {{ns}} exec deploy/kafka -c kafka -- {_TOOLS}/kafka-consumer-groups.sh --bootstrap-server localhost:9092 \
--group {_GROUP} --topic {_SOURCE} --reset-offsets --shift-by 1 --execute
kubectl -n {{ns}} rollout restart deployment/{{service}}"""

    def __init__(self, app: str, service: str) -> None:
        super().__init__(app, service, topic=_SOURCE, group=_GROUP)

    def more_checks(self) -> Iterable[Check]:
        return [Progress()]

    def set_up(self) -> None:
        kafka = self.kubernetes.get("deployments", "kafka", self.namespace)
        image = kafka["spec"]["template"]["spec"]["containers"][0]["image"]
        for name, script in ((_PRODUCER, _FEED), (_VALIDATOR, _VALIDATE)):
            container: Obj = {"name": "worker", "image": image, "command": ["sh", "-c", script]}
            self.kubernetes.apply(deployment(name, self.namespace, {"containers": [container]}))
            self.cluster.wait(40)
