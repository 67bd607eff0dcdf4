"""The agent that undoes the latest revision of every Deployment, and blames the one with the newest revision."""

from __future__ import annotations

from clients.trivial import TrivialAgent, objects, revisions, undo
from srearena.service.kubernetes import Kubernetes


class UndoEverything(TrivialAgent):
    def guess(self, api: Kubernetes) -> str:
        histories = {
            str(obj["metadata"]["name"]): revisions(api, obj)
            for _, obj in objects(api, ["deployments"], [self.namespace])
        }
        rolled_out = {name: history for name, history in histories.items() if len(history) > 1}
        return max(
            sorted(rolled_out or histories),
            key=lambda name: histories[name][0]["metadata"]["creationTimestamp"] if histories[name] else "",
            default="",
        )

    def repair(self, api: Kubernetes) -> None:
        for _, obj in objects(api, ["deployments"], [self.namespace]):
            undo(api, obj)


AGENT = UndoEverything
