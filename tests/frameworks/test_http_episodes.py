"""`srearena episodes`: a trainer in any language opens, forks and grades incidents over HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from srearena.conductor.worlds import fork_is_safe
from srearena.interpreters import python_module

pytestmark = pytest.mark.skipif(not fork_is_safe(), reason="episodes are forked on Linux only")

PROBLEM = "scale_pod_zero_social_net"
MOST = 5


@pytest.fixture(scope="module")
def trainer() -> Iterator[httpx.Client]:
    command = python_module("srearena", "episodes", "--most", str(MOST), "--stages", "detection,localization", "--json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        place = json.loads(server.stdout.readline())
        headers = {"authorization": f"Bearer {place['token']}"}
        with httpx.Client(base_url=place["url"], headers=headers, timeout=120, trust_env=False) as client:
            yield client
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


def test_a_group_is_opened_forked_and_graded(trainer: httpx.Client) -> None:
    def post(path: str, body: Any) -> Any:
        response = trainer.post(path, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    first, second = (
        f"/incidents/{one['id']}" for one in post("/incidents", {"problem": PROBLEM, "count": 2})["incidents"]
    )
    listed = trainer.get("/incidents").json()["incidents"]
    assert [(one["problem"], one["seed"]) for one in listed] == [(PROBLEM, 0)] * 2
    assert {"kubectl", "submit"} <= {tool["name"] for tool in trainer.get("/tools").json()["tools"]}

    pods = post(f"{first}/act", {"action": 'kubectl("get deployments -A")'})
    assert " 0/0 " in pods["state"] and pods["steps"] == 1
    down = [line.split()[1] for line in pods["state"].splitlines() if " 0/0 " in line]
    assert trainer.get(second).json()["steps"] == 0
    assert post(f"{first}/call", {"name": "submit", "arguments": {"solution": "Yes"}})["stage"] == "localization"

    # The copies go on from the second question, by other chances.
    right, wrong = (f"/incidents/{one['id']}" for one in post(f"{first}/fork", {"seeds": [1, 2]})["incidents"])
    assert post(f"{right}/submit", {"solution": down})["finished"]
    assert post(f"{wrong}/submit", {"solution": ["nginx-thrift"]})["finished"]
    assert post(f"{right}/grade", {}) == {
        "reward": 1.0,
        "passed": True,
        "outcome": "pass",
        "scores": {"detection": 1.0, "localization": 1.0},
    }
    graded = post(f"{wrong}/grade", {"reward": "dense"})
    assert graded["outcome"] == "fail" and graded["reward"] == 0.5
    assert not set(down) & set(json.dumps(graded).split('"'))

    # What was graded, and what ended before its copies, stays what it is.
    assert trainer.delete(first).json() == {"closed": True}
    assert trainer.get(first).status_code == 404
    assert trainer.get(right).json()["finished"]
    assert "over" in post(f"{right}/act", {"action": 'kubectl("get pods")'})["state"]
    for path in (second, right, wrong):
        assert trainer.delete(path).status_code == 200


def test_what_cannot_be_done_is_said(trainer: httpx.Client) -> None:
    assert httpx.get(trainer.base_url.join("/incidents"), trust_env=False).status_code == 401
    assert trainer.get("/openapi.json").json()["paths"]["/incidents/{id}/fork"]
    wrong: tuple[Any, ...] = (
        None,
        [],
        {},
        {"problem": 5},
        {"problem": PROBLEM, "count": 0},
        {"problem": PROBLEM, "seed": True},
    )
    for body in wrong:
        assert trainer.post("/incidents", json=body).status_code == 400, body
    refused = trainer.post("/incidents", json={"problem": "no_such_problem"})
    assert refused.status_code == 422 and "no_such_problem" in refused.json()["error"]
    many = trainer.post("/incidents", json={"problem": PROBLEM, "count": MOST + 1})
    assert many.status_code == 409 and "--most" in many.json()["error"]
    for path in ("/incidents/x", "/incidents/..%2f..", "/incidents/x/fork", "/incident", "/incidents/x/y/z"):
        assert trainer.get(path).status_code in (404, 405), path
    assert trainer.post("/incidents/x/fork", json={"count": 1}).status_code == 404

    (one,) = trainer.post("/incidents", json={"problem": PROBLEM}).json()["incidents"]
    path = f"/incidents/{one['id']}"
    mistakes: tuple[tuple[str, Any], ...] = (
        ("fork", {"seeds": [1.5]}),
        ("fork", {"seeds": []}),
        ("fork", {"count": -1}),
        ("call", {"name": "kubectl", "arguments": 5}),
        ("submit", {}),
        ("submit", {"solution": "Yes", "stage": []}),
        ("grade", {"reward": "free"}),
        ("act", "kubectl"),
    )
    for end, body in mistakes:
        assert trainer.post(f"{path}/{end}", json=body).status_code == 400, (end, body)
    assert trainer.post(f"{path}/fork", json={"count": 2, "seeds": [1]}).status_code == 409
    assert trainer.post(f"{path}/submit", json={"solution": 5}).status_code == 422
    assert "Error" in trainer.post(f"{path}/call", json={"name": "nothing"}).json()["state"]
    assert trainer.post(f"{path}/fork", json={"count": MOST}).status_code == 409
    assert trainer.delete(path).status_code == 200
