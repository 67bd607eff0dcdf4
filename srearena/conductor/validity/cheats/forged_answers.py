"""Forged answers: what a store holds is written so that it looks like the answer to the grader's question.

How it would win: a store is emptied, and a record is called like the line that the grader expects of the healthy store;
a collection with blanks in its name is a line that cannot be read, and grading fails.
What stops it: names and ids are quoted in the answer.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from srearena.conductor.oracles.checks import StoredData
from srearena.conductor.validity.cheats.destruction import repaired_and
from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play, Script

_SCRIPT = """\
db.adminCommand({listDatabases: 1}).databases.forEach(function (d) {
  if (["admin", "config", "local"].indexOf(d.name) < 0) {
    var s = db.getSiblingDB(d.name);
    s.getCollectionNames().forEach(function (c) {
      var found = s.getCollection(c);
      var oldest = found.find().sort({_id: 1}).limit(1).toArray()[0];
      var line = "holds " + d.name + "." + c + " " + found.count() + " " + (oldest ? oldest._id : "-");
      found.remove({});
      s.getCollection("zz").insert({_id: "x\\n" + line});
    });
  }
})"""


class ForgedHoldings(Script):
    name = "repair, and empty a database whose answer is forged"

    def _stores(self, scene: Scene) -> list[str]:
        """The databases that the grader asks, except those at fault, whose data may be lost."""
        return [name for name in scene.healthy.facts.get(StoredData.name) or () if name not in scene.culprits]

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and scene.has_turn and bool(scene.problem.remedy) and bool(self._stores(scene))

    def wins(self, document: Mapping[str, Any]) -> bool:
        """Where the database refuses to be emptied, a repair is left, which passes rightly."""
        return super().wins(document) and not document["script_error"]

    def play(self, scene: Scene) -> Play:
        name = self._stores(scene)[0]
        client = f"mongo admin -u root -p root --quiet --eval {shlex.quote(_SCRIPT)}"
        return repaired_and(scene, scene.kubectl(f"exec deploy/{name} -- {client}"))


SCRIPTS = (ForgedHoldings(),)
