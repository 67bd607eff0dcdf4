"""Databases still hold the records from before the fault: no collection has lost records, and the oldest are the same.

Only databases whose files are on a claim are queried: others lose their content with every restart. Where the fault
destroyed the data, new data is accepted.

Why it cannot be gamed: a pod of the harness asks over the network, with the client of the database's own image; which
pod answers is the subject of `backends`, and where its files are that of `intent`. A database that was dropped and
filled again by its service has as many records, but other ones: their ids are made anew. Names and ids are printed as
JSON, so that none can look like another line of the answer.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.grading.images import repository
from srearena.conductor.grading.pod_templates import pod_labels, pod_spec, references
from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.probing import ProbeFailed, run_probe
from srearena.service.kubernetes import Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_COLLECTIONS = """\
db.adminCommand({listDatabases: 1}).databases.forEach(function (d) {
  if (["admin", "config", "local"].indexOf(d.name) < 0) {
    var s = db.getSiblingDB(d.name);
    s.getCollectionNames().forEach(function (c) {
      var oldest = s.getCollection(c).find().sort({_id: 1}).limit(1).toArray()[0];
      var held = [d.name + "." + c, "" + s.getCollection(c).count(), "" + (oldest ? oldest._id : "-")];
      print("holds " + JSON.stringify(held));
    });
  }
})"""
_CLIENTS = {"mongo": "mongo {host}:27017/admin -u root -p root --quiet --eval"}
"""The client of each kind of database, by image repository, with the credentials that the applications declare."""
Holdings = dict[str, dict[str, tuple[int, str]]]
"""Per store: each collection with its number of records and the id of the oldest."""


class StoredData(Check):
    """The databases on claims hold their records of the baseline."""

    name = "data"

    def record_baseline(self, problem: Problem) -> Holdings:
        services = problem.kubernetes.list("services", problem.namespace)
        workloads = [obj for resource in WORKLOADS for obj in problem.kubernetes.list(resource, problem.namespace)]
        return _holdings(problem, list(_stores(workloads, services)))

    def complaints(self, problem: Problem) -> list[str]:
        before: Holdings = self.baseline_value(problem) or {}
        if not before or problem.baseline is None:
            return []
        namespace = problem.namespace
        workloads = list(problem.baseline.of(*WORKLOADS, namespace=namespace))
        stores = list(_stores(workloads, list(problem.baseline.of("services", namespace=namespace))))
        try:
            now = _holdings(problem, [store for store in stores if store[0] in before])
        except ProbeFailed as failed:
            return [str(failed)]
        lost = set(problem.faulty_services) if problem.data_is_lost else set()
        return [
            line for store, records in before.items() if store not in lost for line in _missing(store, records, now)
        ]


def _stores(workloads: list[Obj], services: list[Obj]) -> Iterator[tuple[str, str, str]]:
    """The databases on claims: workload, Service, image."""
    for workload in workloads:
        spec = pod_spec(workload)
        image = str(spec["containers"][0].get("image", ""))
        on_claim = any(resource == "persistentvolumeclaims" for resource, _ in references(spec))
        if repository(image) not in _CLIENTS or not on_claim:
            continue
        for service in services:
            selector = service["spec"].get("selector") or {}
            if selector and selector.items() <= pod_labels(workload).items():
                yield workload["metadata"]["name"], service["metadata"]["name"], image
                break


def _holdings(problem: Problem, stores: list[tuple[str, str, str]]) -> Holdings:
    found: Holdings = {}
    for image in dict.fromkeys(image for _, _, image in stores):
        client = _CLIENTS[repository(image)]
        script = "\n".join(
            f"echo store {name}; {client.format(host=host)} {shlex.quote(_COLLECTIONS)} 2>&1"
            for name, host, used in stores
            if used == image
        )
        store = ""
        for line in run_probe(problem, f"{script}\ntrue", image=image).splitlines():
            word, _, rest = line.partition(" ")
            if word == "store":
                store = rest
            elif word == "holds":
                collection, count, oldest = json.loads(rest)
                found.setdefault(store, {})[collection] = (int(count), oldest)
    return found


def _missing(store: str, before: dict[str, tuple[int, str]], now: Holdings) -> Iterator[str]:
    for collection, (count, oldest) in before.items():
        present, first = now.get(store, {}).get(collection, (0, "-"))
        if present < count:
            yield f"{collection} of {store} holds {present} records, and held {count}"
        elif first != oldest:
            yield f"{collection} of {store} holds other records than before the fault"
