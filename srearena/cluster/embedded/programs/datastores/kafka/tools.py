"""The scripts of /opt/kafka/bin, as far as they are there: each connects, asks, prints as the real one does.

A client first finds the broker at --bootstrap-server and then goes to the address the broker advertises; where that
cannot be reached it fails although the first could, as in life.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.dialogue import Dialogue
from srearena.cluster.embedded.programs.timestamps import stamp

JVM_SECONDS = 1.1
JVM_MEMORY = 55 * 1024 * 1024
PATIENCE = 60.0
POLL = 0.5
PRODUCE_SECONDS = 0.25
REPORT_SECONDS = 5.0
UNTHROTTLED = 2000.0
"""Records a second of an unthrottled producer."""
SWITCHES = frozenset(
    {
        "list",
        "describe",
        "create",
        "delete",
        "alter",
        "all-groups",
        "all-topics",
        "execute",
        "dry-run",
        "from-beginning",
    }
    | {"to-earliest", "to-latest", "reset-offsets", "members", "state", "verbose", "if-not-exists", "if-exists", "all"}
)


class ToolError(Exception):
    """The tool gives up: what it prints, and its exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class Tool:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.values: dict[str, str] = {}
        self.properties: dict[str, str] = {}
        self.on: set[str] = set()
        words = list(process.argv[1:])
        if process.binary == "kafka-run-class.sh" and words:
            self.name = words.pop(0).rpartition(".")[2]
        else:
            self.name = process.binary
        while words:
            word = words.pop(0)
            name, equals, value = word.lstrip("-").partition("=")
            if not word.startswith("--"):
                continue
            if name in SWITCHES:
                self.on.add(name)
                continue
            if name == "producer-props":
                while words and not words[0].startswith("--"):
                    key, _, setting = words.pop(0).partition("=")
                    self.properties[key] = setting
                continue
            value = value if equals else words.pop(0) if words else ""
            if name in ("property", "consumer-property", "producer-property"):
                key, _, setting = value.partition("=")
                self.properties[key] = setting
            self.values[name] = value
        self.dialogue: Dialogue | None = None

    async def run(self) -> int:
        await self.process.allocate(JVM_MEMORY)
        await self.process.sleep(JVM_SECONDS)
        action = TOOLS.get(self.name)
        if action is None:
            error = f"Error: Could not find or load main class {self.name}"
            await self.process.error(f"{error}\nCaused by: java.lang.ClassNotFoundException: {self.name}\n")
            return 1
        try:
            await self._connect()
            return await action(self)
        except ToolError as error:
            await self.process.error(f"{error}\n")
            return error.code
        finally:
            if self.dialogue is not None:
                self.dialogue.connection.close()

    # --- the broker --------------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        servers = self.values.get("bootstrap-server") or self.values.get("broker-list", "")
        servers = servers or self.properties.get("bootstrap.servers", "")
        if not servers:
            raise ToolError('Missing required argument "[bootstrap-server]"')
        address = servers.split(",")[0]
        deadline = self.process.clock.now + PATIENCE
        self.dialogue = await self._dial(address, -1, deadline)
        hello = await self.ask({"ask": "topics"})
        advertised = str(hello.get("advertised", ""))
        host = advertised.partition(":")[0]
        if advertised and host not in ("localhost", "127.0.0.1", ""):
            self.dialogue.connection.close()
            self.dialogue = await self._dial(advertised, 1, deadline)

    async def _dial(self, address: str, node: int, deadline: float) -> Dialogue:
        host, _, port = address.rpartition(":")
        number = int(port) if port.isdigit() else 9092
        pause = 1.0
        while True:
            near = "127.0.0.1" if host in ("localhost", "127.0.0.1", "") else host
            result = await self.process.container.network.connect(near, number, timeout=30.0)
            if result.outcome is Outcome.CONNECTED and result.connection is not None:
                return await Dialogue.open(result.connection, "kafka")
            await self._warn(host, result.address or near, number, node, result.outcome)
            if self.process.clock.now + pause > deadline:
                raise ToolError(_TIMED_OUT.get(self.name, "Timed out waiting for a node assignment. Call: listTopics"))
            await self.process.sleep(pause)
            pause = min(pause * 2, 15.0)

    async def _warn(self, host: str, address: str, port: int, node: int, outcome: Outcome) -> None:
        when = f"{stamp(self.process, '%Y-%m-%d %H:%M:%S')},{int(self.process.clock.now % 1 * 1000):03d}"
        if outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
            text = f"Couldn't resolve server {host}:{port} from bootstrap.servers as DNS resolution failed for {host}"
            source = "org.apache.kafka.clients.ClientUtils"
        else:
            place = f"{host}/{address}:{port}"
            text = (
                f"[AdminClient clientId=adminclient-1] Connection to node {node} ({place}) could not be established. "
            )
            text += "Node may not be available."
            source = "org.apache.kafka.clients.NetworkClient"
        await self.process.write(f"[{when}] WARN {text} ({source})\n")

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self.dialogue is not None
        reply = await self.dialogue.ask(message)
        if reply is None:
            raise ToolError("org.apache.kafka.common.errors.DisconnectException")
        return reply

    async def want(self, message: dict[str, Any], prefix: str) -> dict[str, Any]:
        """Ask; what the broker refuses ends the tool."""
        reply = await self.ask(message)
        if "error" in reply:
            raise ToolError(f"{prefix}{reply['error']}")
        return reply

    def topic(self) -> str:
        return self.values.get("topic", "")


_TIMED_OUT = {
    "kafka-topics.sh": "Error while executing topic command : Timed out waiting for a node assignment. "
    "Call: listTopics",
    "kafka-consumer-groups.sh": "Error: Executing consumer group command failed due to Timed out waiting for a node "
    "assignment. Call: listGroups",
}


async def _topics(tool: Tool) -> int:
    prefix = "Error while executing topic command : "
    write = tool.process.write
    if "list" in tool.on:
        reply = await tool.ask({"ask": "topics"})
        await write("".join(f"{row['name']}\n" for row in reply["topics"]))
    elif "describe" in tool.on:
        reply = await tool.ask({"ask": "topics", "topic": tool.topic()})
        if tool.topic() and not reply["topics"]:
            raise ToolError(f"{prefix}Topic '{tool.topic()}' does not exist as expected")
        for row in reply["topics"]:
            shown = ",".join(f"{key}={value}" for key, value in row["settings"].items())
            await write(
                f"Topic: {row['name']}\tTopicId: {_identity(row['name'])}\tPartitionCount: {row['partitions']}\t"
                f"ReplicationFactor: 1\tConfigs: {shown}\n"
            )
            for number in range(row["partitions"]):
                node = row["leader"]
                await write(
                    f"\tTopic: {row['name']}\tPartition: {number}\tLeader: {node}\tReplicas: {node}\tIsr: {node}\t"
                    "Elr: \tLastKnownElr: \n"
                )
    elif "create" in tool.on:
        settings = dict(pair.split("=", 1) for pair in tool.values.get("config", "").split(",") if "=" in pair)
        request = {
            "ask": "create",
            "topic": tool.topic(),
            "partitions": tool.values.get("partitions"),
            "settings": settings,
        }
        reply = await tool.ask(request)
        if "error" in reply and not ("if-not-exists" in tool.on and "exists" in reply["error"]):
            raise ToolError(f"{prefix}{reply['error']}")
        await write(f"Created topic {tool.topic()}.\n")
    elif "delete" in tool.on:
        reply = await tool.ask({"ask": "delete", "topic": tool.topic()})
        if "error" in reply and "if-exists" not in tool.on:
            raise ToolError(f"{prefix}Topic '{tool.topic()}' does not exist as expected")
    elif "alter" in tool.on:
        await tool.want(
            {"ask": "grow", "topic": tool.topic(), "partitions": tool.values.get("partitions", "0")}, prefix
        )
    else:
        raise ToolError("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    return 0


def _identity(name: str) -> str:
    """A topic id: 22 characters that belong to the name."""
    padded = (name.encode() * 16)[:16]
    return (
        base64.urlsafe_b64encode(bytes((byte * 7 + i * 13) % 256 for i, byte in enumerate(padded))).decode().rstrip("=")
    )


async def _groups(tool: Tool) -> int:
    prefix = "Error: Executing consumer group command failed due to "
    if "list" in tool.on:
        reply = await tool.ask({"ask": "groups"})
        await tool.process.write("".join(f"{name}\n" for name in reply["groups"]))
        return 0
    if "describe" in tool.on:
        names = [tool.values["group"]] if "group" in tool.values else (await tool.ask({"ask": "groups"}))["groups"]
        for name in names:
            await _describe_group(tool, name)
        return 0
    if "reset-offsets" in tool.on:
        request: dict[str, Any] = {"ask": "reset", "group": tool.values.get("group", ""), "topic": tool.topic()}
        request["execute"] = "execute" in tool.on
        ways = {"to-earliest": "earliest", "to-latest": "latest"}
        request["to"] = next((to for name, to in ways.items() if name in tool.on), "")
        for name, to in (("to-offset", "offset"), ("shift-by", "shift")):
            if name in tool.values:
                request |= {"to": to, "value": tool.values[name]}
        reply = await tool.ask(request)
        if "error" in reply:
            await tool.process.write(f"\nError: {reply['error']}\n")
            return 1
        await tool.process.write(f"\n{'GROUP':<30} {'TOPIC':<30} {'PARTITION':<10} {'NEW-OFFSET':<15}\n")
        for group, topic, number, offset in reply["rows"]:
            await tool.process.write(f"{group:<30} {topic:<30} {number:<10} {offset:<15}\n")
        return 0
    if "delete" in tool.on:
        name = tool.values.get("group", "")
        reply = await tool.ask({"ask": "delete group", "group": name})
        if "error" in reply:
            await tool.process.write("\nError: Deletion of some consumer groups failed:\n")
            await tool.process.write(
                f"* Group '{name}' could not be deleted due to: "
                f"org.apache.kafka.common.errors.{reply['kind']}: {reply['error']}\n"
            )
            return 1
        await tool.process.write(f"Deletion of requested consumer groups ('{name}') was successful.\n")
        return 0
    raise ToolError(f"{prefix}no action given")


async def _describe_group(tool: Tool, name: str) -> None:
    reply = await tool.ask({"ask": "group", "group": name})
    write = tool.process.write
    if "error" in reply:
        await write(f"\nError: Consumer group '{name}' does not exist.\n")
        return
    if not reply["active"]:
        await write(f"\nConsumer group '{name}' has no active members.\n")
    rows = reply["rows"]
    left = max(15, len(name))
    middle = max([15, *(len(row[0]) for row in rows)])
    member = f"{reply['member']}-{_identity(name)[:8].lower()}" if reply["active"] else "-"
    right = max(15, len(member))
    await write(
        f"\n{'GROUP':<{left}} {'TOPIC':<{middle}} {'PARTITION':<10} {'CURRENT-OFFSET':<15} {'LOG-END-OFFSET':<15} "
        f"{'LAG':<15} {'CONSUMER-ID':<{right}} {'HOST':<15} CLIENT-ID\n"
    )
    for topic, number, position, end in rows:
        host, client = (reply["host"], reply["member"]) if reply["active"] else ("-", "-")
        await write(
            f"{name:<{left}} {topic:<{middle}} {number:<10} {position:<15} {end:<15} {end - position:<15} "
            f"{member:<{right}} {host:<15} {client}\n"
        )


async def _produce(tool: Tool) -> int:
    parses = tool.properties.get("parse.key") == "true"
    separator = tool.properties.get("key.separator", "\t")
    while line := await tool.process.fd(0).read_line():
        text = line.rstrip(b"\n")
        key: str | None = None
        if parses:
            head, found, text = text.partition(separator.encode())
            if not found:
                raise ToolError("org.apache.kafka.common.KafkaException: No key separator found on line number 1")
            key = head.decode(errors="replace")
        reply = await tool.ask(
            {"ask": "produce", "topic": tool.topic(), "key": key, "value": base64.b64encode(text).decode()}
        )
        if "error" in reply:
            await tool.process.error(
                f"ERROR Error when sending message to topic {tool.topic()} with key: null, value: {len(text)} bytes "
                f"with error: (org.apache.kafka.clients.producer.internals.ErrorLoggingCallback)\n"
                f"org.apache.kafka.common.errors.{reply['kind']}: {reply['error']}\n"
            )
    return 0


async def _consume(tool: Tool) -> int:
    limit = int(tool.values.get("max-messages", "0") or 0)
    patience = float(tool.values.get("timeout-ms", "0") or 0) / 1000
    request: dict[str, Any] = {"ask": "consume", "topic": tool.topic(), "beginning": "from-beginning" in tool.on}
    request |= {"group": tool.values.get("group"), "partition": tool.values.get("partition")}
    if tool.values.get("offset", "") == "earliest":
        request["beginning"] = True
    elif tool.values.get("offset", "").isdigit() and "partition" in tool.values:
        wanted = int(tool.values["partition"])
        request["positions"] = [int(tool.values["offset"]) if n == wanted else 0 for n in range(wanted + 1)]
        request["positions"] += [0] * 64
    with_key = tool.properties.get("print.key") == "true"
    with_offset = tool.properties.get("print.offset") == "true"
    seen, quiet_since = 0, tool.process.clock.now
    while not limit or seen < limit:
        request["limit"] = min(500, limit - seen) if limit else 500
        reply = await tool.want(request, "ERROR Error processing message, terminating consumer process: ")
        for _, offset, key, value in reply["rows"]:
            head = f"Offset:{offset}\t" if with_offset else ""
            head += f"{'null' if key is None else key}\t" if with_key else ""
            await tool.process.write(head.encode() + base64.b64decode(value) + b"\n")
            seen += 1
        request["positions"] = reply["positions"]
        if reply["rows"]:
            quiet_since = tool.process.clock.now
            continue
        if patience and tool.process.clock.now - quiet_since >= patience:
            await tool.process.error(
                "ERROR Error processing message, terminating consumer process:  (org.apache.kafka.tools.consumer."
                "ConsoleConsumer)\norg.apache.kafka.common.errors.TimeoutException\n"
            )
            break
        await tool.process.sleep(POLL)
    await tool.process.error(f"Processed a total of {seen} messages\n")
    return 0


async def _perform(tool: Tool) -> int:
    """kafka-producer-perf-test.sh: so many records of a size, at a rate; a line every five seconds."""
    number = int(tool.values.get("num-records", "0") or 0)
    size = int(tool.values.get("record-size", "100") or 100)
    rate = float(tool.values.get("throughput", "-1") or -1)
    rate = rate if rate > 0 else UNTHROTTLED
    largest = int(tool.properties.get("max.request.size", "1048576"))
    if size + 88 > largest:
        raise ToolError(
            f"org.apache.kafka.common.errors.RecordTooLargeException: The message is {size + 88} bytes when serialized "
            f"which is larger than {largest}, which is the value of the max.request.size configuration."
        )
    clock = tool.process.clock
    started = reported = clock.now
    sent = last_sent = 0
    while sent < number:
        await tool.process.sleep(PRODUCE_SECONDS)
        due = min(number, int((clock.now - started) * rate)) - sent
        if due > 0:
            request = {"ask": "append", "topic": tool.topic(), "count": due, "size": size}
            reply = await tool.ask(request)
            if "error" in reply:
                await tool.process.error(f"org.apache.kafka.common.errors.{reply['kind']}: {reply['error']}\n")
            sent += due
        if clock.now - reported >= REPORT_SECONDS:
            await tool.process.write(_performance(sent - last_sent, clock.now - reported, size))
            reported, last_sent = clock.now, sent
    await tool.process.write(_performance(sent, max(clock.now - started, PRODUCE_SECONDS), size))
    return 0


def _performance(records: int, seconds: float, size: int) -> str:
    rate = records / seconds
    return f"{records} records sent, {rate:.1f} records/sec ({rate * size / 1024**2:.2f} MB/sec)\n"


async def _offsets(tool: Tool) -> int:
    earliest = tool.values.get("time", "-1") in ("-2", "earliest")
    reply = await tool.ask({"ask": "offsets", "topic": tool.topic(), "earliest": earliest})
    if not reply["offsets"]:
        raise ToolError("Error: Could not match any topic-partitions with the specified filters")
    await tool.process.write("".join(f"{name}:{number}:{offset}\n" for name, number, offset in reply["offsets"]))
    return 0


async def _configs(tool: Tool) -> int:
    kind = tool.values.get("entity-type", "topics" if "topic" in tool.values else "brokers")
    name = tool.values.get("entity-name", tool.topic())
    singular = kind.rstrip("s")
    prefix = "Error while executing config command with args: "
    if "alter" in tool.on:
        add = dict(pair.split("=", 1) for pair in tool.values.get("add-config", "").split(",") if "=" in pair)
        remove = [each for each in tool.values.get("delete-config", "").split(",") if each]
        await tool.want({"ask": "configure", "kind": kind, "name": name, "add": add, "remove": remove}, prefix)
        await tool.process.write(f"Completed updating config for {singular} {name}.\n")
        return 0
    reply = await tool.want({"ask": "configuration", "kind": kind, "name": name}, prefix)
    everything = "all" in tool.on
    await tool.process.write(f"{'All' if everything else 'Dynamic'} configs for {singular} {name} are:\n")
    shown = reply["all"] if everything else reply["settings"]
    origin = "DEFAULT_CONFIG" if everything else "DYNAMIC_TOPIC_CONFIG"
    for key, value in shown.items():
        await tool.process.write(f"  {key}={value} sensitive=false synonyms={{{origin}:{key}={value}}}\n")
    return 0


async def _versions(tool: Tool) -> int:
    address = tool.values.get("bootstrap-server", "")
    await tool.process.write(
        f"{address} (id: 1 rack: null isFenced: false) -> (\n\tProduce(0): 0 to 11 [usable: 11]\n)\n"
    )
    return 0


TOOLS: dict[str, Callable[[Tool], Awaitable[int]]] = {
    "kafka-topics.sh": _topics,
    "kafka-consumer-groups.sh": _groups,
    "kafka-console-producer.sh": _produce,
    "kafka-console-consumer.sh": _consume,
    "kafka-producer-perf-test.sh": _perform,
    "kafka-get-offsets.sh": _offsets,
    "GetOffsetShell": _offsets,
    "kafka-configs.sh": _configs,
    "kafka-broker-api-versions.sh": _versions,
}
BINARIES = (*(f"/opt/kafka/bin/{name}" for name in TOOLS if name.endswith(".sh")), "/opt/kafka/bin/kafka-run-class.sh")
