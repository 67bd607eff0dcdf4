"""Databases that refuse their clients: users or rights are missing, although the clients did not change.

The users that clients need are written down in the scripts that initialize an empty data directory. Running their
statements again, with the credentials that they give out, restores what is missing and leaves the rest as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from clients.rules import commands
from clients.rules.changes import suspicious_revision
from clients.rules.hypotheses import Hypothesis, Repair, Strength
from clients.rules.runbooks import runbook
from clients.rules.system import Obj, System, containers_of, name_of, namespace_of, path_of, template_of
from clients.rules.topology import calls, configuration_of, mentions, targets

_REFUSED = re.compile(
    r"not authorized on|authentication failed|auth(?:entication)? (?:error|failure)|access denied for user|"
    r"command \w+ requires authentication|password authentication failed|permission denied for|role .* does not exist|"
    r"WRONGPASS|NOAUTH|could not find user|UserNotFound",
    re.IGNORECASE,
)
_STORES = re.compile(
    r"mongo|mysql|maria|postgres|redis|valkey|memcached|cassandra|etcd|tidb|cockroach|opensearch|kafka"
)
_INIT_FOLDER = "/docker-entrypoint-initdb.d"
_LOOP = re.compile(r"for (\w+) in ([^;\n]+?)\s*(?:;|\n)\s*do\n(.*?)\ndone", re.DOTALL)
_EVAL = re.compile(r"^\s*mongo(?:sh)?\b.*?--eval (\"(?:[^\"\\]|\\.)*\"|'[^']*')", re.MULTILINE)
_USER = re.compile(r"createUser\(\{\s*user:\s*['\"]([^'\"]+)['\"],\s*pwd:\s*['\"]([^'\"]+)['\"]")


def is_store(workload: Obj) -> bool:
    return any(_STORES.search(str(one.get("image", "")).rpartition("/")[2]) for one in containers_of(workload))


@runbook
def refuses_its_client(system: System) -> Iterator[Hypothesis]:
    graph: dict[str, set[str]] | None = None
    known = targets(system)
    for name in sorted(system.suffering):
        client, text = system.workload(name), system.logs_of(name)
        if client is None or is_store(client) or not _REFUSED.search(text):
            continue
        revision = suspicious_revision(system, client) if client["kind"] == "Deployment" else None
        if revision is not None and system.preceded_trouble(revision.at):
            continue  # it asks with other credentials than before
        graph = graph or calls(system)
        stores = [one for one in dict.fromkeys(mentions(text, known)) if one != name] or sorted(graph.get(name, ()))
        for store in stores:
            obj = system.workload(store)
            if obj is None or not is_store(obj):
                continue
            line = next(line for line in text.splitlines() if _REFUSED.search(line))
            repairs = _restored(system, obj) or _forgotten(system, obj)
            yield Hypothesis(
                path_of(obj),
                f"it refuses {name}, which did not change: {line[-160:]}",
                Strength.CONFIRMED,
                [*repairs, commands.restart(client)] if repairs else [],
                frozenset({store, name}),
            )
            break


def _restored(system: System, store: Obj) -> list[Repair]:
    """The statements of its initialization scripts, run again as each of the users that these create."""
    statements = [one for script in _scripts(system, store) for one in _statements(script)]
    users = {match[1]: match[2] for one in statements for match in _USER.finditer(one)}
    target = f"{str(store['kind']).lower()}/{name_of(store)}"
    return [
        Repair(
            f"kubectl -n {namespace_of(store)} exec {target} -- mongo admin -u {shlex.quote(user)} "
            f"-p {shlex.quote(password)} --quiet --eval {shlex.quote(statement)}"
        )
        for user, password in reversed(users.items())
        for statement in statements
    ]


def _forgotten(system: System, store: Obj) -> list[Repair]:
    """A restart, where a key-value store demands a password that it does not declare: it was set while it ran."""
    images = " ".join(str(one.get("image")) for one in containers_of(store))
    declared = configuration_of(system, store)
    if not re.search(r"redis|valkey", images) or re.search(r"requirepass|aclfile|PASSWORD", declared):
        return []
    return [commands.restart(store)]


def _scripts(system: System, store: Obj) -> Iterator[str]:
    spec = template_of(store)["spec"]
    mounted = {
        mount["name"]
        for one in containers_of(store)
        for mount in one.get("volumeMounts") or ()
        if str(mount["mountPath"]).startswith(_INIT_FOLDER)
    }
    for volume in spec.get("volumes") or ():
        if volume["name"] in mounted and "configMap" in volume:
            config = system.find("configmaps", str(volume["configMap"]["name"]))
            yield from map(str, ((config or {}).get("data") or {}).values())


def _statements(script: str) -> list[str]:
    """The statements for the MongoDB shell in a script, with its simple loops unrolled."""

    def unrolled(match: re.Match[str]) -> str:
        variable, values, body = match.groups()
        return "\n".join(re.sub(rf"\$\{{?{variable}\}}?", value, body) for value in values.split())

    text = _LOOP.sub(unrolled, script)
    found = [shlex.split(match[1])[0] for match in _EVAL.finditer(text)]
    return [one for one in found if "createUser" in one or "grantRoles" in one]
