"""A running cluster and a running episode, in a real browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest
import yaml
from selenium.webdriver import Chrome

from srearena.conductor.session import Session
from srearena.service.kubernetes import Kubernetes
from srearena.snapshots.examples import unpack
from tests.view.conftest import serving
from tests.view.pages import Pages
from tests.view.results import HOSTILE

NAME = "viewed"
_KINDS = ("prometheus", "loki", "jaeger", "alertmanager")
CLUSTER = f"#/incident/{quote(f'cluster:{NAME}', safe='')}"


@dataclass
class Running:
    """A cluster of `srearena up`, an episode on it, and the link of a view of both."""

    link: str
    api: Kubernetes
    session: Session
    addresses: dict[str, str]

    @property
    def episode(self) -> str:
        return f"#/incident/{quote(f'episode:{self.session.session_id}', safe='')}"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("incidents")
    environment = {"SREARENA_STATE_DIR": str(folder / "state")}
    srearena = [sys.executable, "-m", "srearena"]
    up = [*srearena, "up", "hotel_reservation", "--name", NAME, "--history", "480", "--detach", "--json"]
    up += ["--grafana", str(folder / "grafana.yaml")]
    started = subprocess.run(up, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    addresses = json.loads(started.stdout)
    sources = yaml.safe_load((folder / "grafana.yaml").read_text())["datasources"]
    assert {source["type"]: source["url"] for source in sources} == {one: addresses[one] for one in _KINDS}
    assert sources[0]["secureJsonData"] == {"httpHeaderValue1": f"Bearer {addresses['token']}"}
    assert (folder / "grafana.yaml").stat().st_mode & 0o777 == 0o600
    session = Session(folder / "results" / "run-1" / ".live")
    endpoints = {key: addresses[key] for key in ("prometheus", "loki", "jaeger", "alertmanager", "token")}
    session.publish({"application": "Hotel", "kubeconfig": addresses["kubeconfig"], "telemetry": endpoints})
    try:
        with serving(folder / "results", **environment) as link, Kubernetes(addresses["kubeconfig"]) as api:
            yield Running(link, api, session, addresses)
    finally:
        session.close()
        subprocess.run([*srearena, "down", NAME], env={**os.environ, **environment}, capture_output=True, check=True)


def break_geo(pages: Pages, running: Running) -> None:
    """Take a service's pods away, once its objects have been observed."""
    pages.open(f"{CLUSTER}/cluster", "#pods tbody tr")
    running.api.scale("deployments", "geo", 0, "hotel-reservation")


def press(pages: Pages, selector: str) -> None:
    """Press a button of a table that may be drawn again meanwhile."""
    script = "const one = document.querySelector(arguments[0]); one?.click(); return one !== null"
    pages.wait(lambda: pages.chrome.execute_script(script, selector))


def advance(pages: Pages) -> None:
    """Let five minutes pass."""
    before = pages.text("#clock-time")
    pages.chrome.find_elements("css selector", ".clock button")[5].click()
    pages.wait(lambda: pages.text("#clock-time") != before and "advancing" not in pages.text(".clock"))


@pytest.fixture
def pages(chrome: Chrome, running: Running) -> Pages:
    chrome.get_log("browser")
    return Pages(chrome, running.link)


def look_at_evidence(pages: Pages, running: Running) -> None:
    """Open the page of every kind of evidence."""
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "hostile.1", "namespace": "hotel-reservation"},
        "involvedObject": {"kind": "Pod", "namespace": "hotel-reservation", "name": "geo"},
        "reason": "Hostile",
        "message": HOSTILE,
        "type": "Warning",
        "lastTimestamp": "2099-01-01T00:00:00Z",
    }
    configuration = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hostile"}, "data": {"a": HOSTILE}}
    pages.open(f"{CLUSTER}/cluster", "#pods tbody tr")  # objects are observed from here on
    for obj in (event, configuration):
        running.api.create(obj, "hotel-reservation")
    pages.open(f"{CLUSTER}/cluster", "#events tbody tr")
    assert len(pages.all("#nodes li")) == 4
    assert not any(name.startswith("geo-") for name in pages.all("#pods tbody th"))
    pages.wait(lambda: "<script>window.broken = 1</script>" in pages.text("#events"))
    pages.press("3")
    pages.wait(lambda: pages.all("#log .log-line"))
    assert pages.hash == f"{CLUSTER}/logs"
    pages.type("#search", "geo")
    pages.wait(lambda: "q=geo" in pages.hash and {text.lower() for text in pages.all("#log mark")} == {"geo"})
    pages.press("4")
    pages.wait(lambda: pages.all("#traces tbody tr"))
    pages.find("#failed").click()
    failing = "#traces tbody td.level-2"
    pages.wait(
        lambda: "failed=true" in pages.hash and len(pages.all(failing)) == len(pages.all("#traces tbody tr")) > 0
    )
    press(pages, "#traces button")
    pages.wait(lambda: pages.all(".waterfall li.level-2"))
    press(pages, ".waterfall button")
    pages.wait(lambda: "http.route" in "".join(pages.all(".tags")))
    pages.press("5")
    pages.wait(lambda: any("geo" in name for name in pages.all("#objects th")))
    row = next(row for row in pages.all("#objects tbody tr") if "deployments/geo" in row)
    assert "changed" in row and "spec.replicas" in row
    pages.wait(lambda: "configmaps/hostile" in pages.text("#objects"))
    click = "[...document.querySelectorAll('#objects button')].find((one) => one.textContent === arguments[0]).click()"
    pages.chrome.execute_script(click, "configmaps/hostile")
    pages.wait(lambda: "<script>window.broken = 1</script>" in "".join(pages.all("#object")))
    pages.press("6")
    pages.wait(lambda: pages.all("#expression"))
    pages.type("#expression", "sum by (pod) (kube_pod_status_ready{namespace='hotel-reservation'})")
    pages.find("#run-query").click()
    pages.wait(lambda: pages.all("#series tbody tr"))
    assert any("frontend" in name for name in pages.all("#series td.mono"))
    pages.type("#expression", "kube_pod_status_phase{namespace='hotel-reservation'}")
    pages.find("#run-query").click()
    pages.wait(lambda: len(pages.all("#series tbody tr")) > 24)
    assert "The first 24 series are drawn" in pages.text()
    lines = "return [...document.querySelectorAll('#series .swatch path')].map((one) => one.outerHTML)"
    assert len(set(pages.chrome.execute_script(lines))) == 24, "each line looks unlike every other"
    pages.type("#expression", "sum by (")
    pages.find("#run-query").click()
    pages.wait(lambda: "Error:" in pages.text())
    assert pages.chrome.execute_script("return window.broken") is None
    assert [line for line in pages.errors() if "422" not in line] == []


def test_an_incident_unfolds_on_the_page(pages: Pages, running: Running) -> None:
    pages.open("#/incidents", "#incidents li")
    assert sorted(pages.all("#incidents a")) == ["Hotel", NAME]
    pages.open(CLUSTER, ".graph .node")
    names = {
        str(name)
        for name in pages.chrome.execute_script(
            "return [...document.querySelectorAll('.node')].map((one) => one.dataset.service)"
        )
    }
    assert {"frontend", "search", "geo", "memcached-rate"} <= names
    assert pages.text("#summary") == " 8 services as usual no alerts"
    assert "/s" in pages.text(".edge-label")
    assert pages.all(".chart-title") == ["Requests", "Errors", "Latency, 95th percentile", "CPU, cores", "Memory"]
    break_geo(pages, running)
    pages.open(CLUSTER, ".clock button")
    buttons = pages.chrome.find_elements("css selector", ".clock button")
    assert [one.text for one in buttons] == ["Pause", "1×", "5×", "20×", "+1 min", "+5 min", "+30 min"]
    buttons[0].click()
    pages.wait(lambda: "paused" in pages.text(".clock"))
    advance(pages)
    pages.wait(lambda: "alerts firing" in pages.text("#summary") and "deviate" in pages.text("#summary"))
    assert "HighRequestErrorRate" in pages.text("#alerts")
    assert pages.all(".node.level-2[data-service=search] .name") == ["search"]
    assert any("errors" in text for text in pages.all(".edge-label.level-2"))
    pages.find("[data-service=search]").click()
    pages.wait(lambda: pages.text("#signals-head") == "search")
    pages.picture("view-incident")
    assert pages.hash.endswith("?service=search")
    buttons = pages.chrome.find_elements("css selector", ".clock button")
    buttons[1].click()
    pages.wait(
        lambda: pages.chrome.find_elements("css selector", ".clock button")[1].get_attribute("aria-pressed") == "true"
    )
    assert pages.errors() == []
    look_at_evidence(pages, running)


def test_an_episode_shows_its_transcript_and_nothing_that_sets_its_clock(pages: Pages, running: Running) -> None:
    running.session.note("stage", name="detection")
    running.session.note("action", step=1, text='```\nkubectl("get pods")\n```')
    pages.open(running.episode, ".agent .step")
    assert "get pods" in pages.text(".agent .step")
    assert pages.all(".clock button") == []
    running.session.note("state", step=1, text=f"the answer {HOSTILE}")
    pages.wait(lambda: "the answer" in pages.text(".agent"))
    assert pages.chrome.execute_script("return window.broken") is None
    address = urlsplit(running.link)
    token = {"authorization": f"Bearer {address.query.removeprefix('token=')}"}
    with httpx.Client(base_url=f"http://{address.netloc}", headers=token) as client:
        body = {"id": f"episode:{running.session.session_id}", "action": "speed", "value": 0}
        assert client.post("/api/incident/clock", json=body).status_code == 422
        cluster = {**body, "id": f"cluster:{NAME}", "value": 1}
        assert client.post("/api/incident/clock", json=cluster, headers={"authorization": ""}).status_code == 401
        form = client.post("/api/incident/clock", content=json.dumps(cluster), headers={"content-type": "text/plain"})
        assert form.status_code == 415, "a form of another site sends no JSON"
        assert client.post("/api/incident/clock", json={**cluster, "value": 1e9}).status_code == 422
        assert client.get("/api/incident", params={"id": "cluster:nothing"}).status_code == 404


@pytest.mark.parametrize(
    ("theme", "shown"),
    [
        ("light", {"": ".graph .node", "/cluster": "#pods tr", "/objects": "#kind"}),
        ("dark", {"": ".graph .node", "/traces": "#traces tbody tr", "/logs": "#log"}),
    ],
)
def test_axe_finds_nothing_wrong(pages: Pages, axe: str, theme: str, shown: dict[str, str]) -> None:
    for page, selector in shown.items():
        pages.open(f"{CLUSTER}{page}", selector)
        pages.chrome.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
        pages.chrome.execute_script(axe)
        found = pages.chrome.execute_async_script(
            "const done = arguments[0]; axe.run().then((result) => done(JSON.stringify("
            "result.violations.map((one) => one.id + ': ' + one.nodes[0].html))))"
        )
        assert json.loads(found) == [], page


def test_a_narrow_window_shows_everything(pages: Pages) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    pages.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for page, selector in (
            ("", ".graph .node"),
            ("/cluster", "#pods tr"),
            ("/logs", "#log"),
            ("/traces", "#traces tr"),
        ):
            pages.open(f"{CLUSTER}{page}", selector)
            script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert pages.chrome.execute_script(script) == 0, page
    finally:
        pages.chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_recording_opens_in_the_same_pages(chrome: Chrome, tmp_path: Path) -> None:
    (directory, *_) = unpack(tmp_path)
    with serving(directory) as link:
        pages = Pages(chrome, link.partition("#")[0])
        pages.open("#/incident/recording%3A0", ".graph .node.level-2")
        assert "recording" in pages.text("h1") and pages.all(".clock button") == []
        assert "cartFailure" not in pages.text()
        pages.find("#show-truth").click()
        pages.wait(lambda: "cartFailure" in "".join(pages.all("#truth")))
        pages.press("5")
        pages.wait(lambda: "configmaps/flagd-config" in pages.text())
        assert pages.errors() == []


def test_an_incident_is_solved_in_the_page(chrome: Chrome, tmp_path: Path) -> None:
    results = tmp_path / "results"
    (results / "run-1" / ".live").mkdir(parents=True)
    with serving(results, SREARENA_RESULTS=str(results)) as link:
        pages = Pages(chrome, link)
        pages.open("#/play", "#problems tbody tr")
        assert not any("remedy" in text or "explanation" in text for text in pages.all("#problems"))
        pages.type("#search", "k8s_target_port-misconfig")
        pages.wait(lambda: len(pages.all("#problems tbody tr")) < 10)
        press(pages, "#problems button")
        pages.wait(lambda: pages.all("#question") and pages.all(".graph .node"), 200)
        assert "Is anything wrong with the system right now?" in pages.text("#question")
        pages.type("#command", "kubectl get services -n social-network\n")
        pages.wait(lambda: "user-service" in pages.text("#terminal"))
        pages.type("#command", "cat /etc/passwd\n")
        pages.wait(lambda: "Error:" in pages.text("#terminal"))
        pages.type("#command", HOSTILE[:40] + "\n")
        pages.wait(lambda: "<script>window.broken" in pages.text("#terminal"))
        press(pages, ".question .primary")
        pages.wait(lambda: pages.all("#answer-text"))
        pages.type("#answer-text", "Service/user-service")
        press(pages, ".question .primary")
        pages.wait(lambda: "Repair the system" in pages.text("#question"))
        press(pages, ".question .primary")
        pages.wait(lambda: pages.all("#verdict .names li"), 200)
        assert [text.split(":")[0] for text in pages.all("#verdict .names li")] == [
            "detection",
            "localization",
            "mitigation",
        ]
        assert "detection: passed" in pages.text("#verdict") and "mitigation: failed" in pages.text("#verdict")
        press(pages, "#verdict a")
        pages.wait(lambda: pages.all("#verdicts"))
        assert "get services" in pages.text("#transcript")
        assert {"user-service", "compose-post-service"} <= set(pages.all("#system .node .name"))
        assert pages.all("#system .node.marked .word") == ["at fault, named"]
        assert pages.all("#system .edge.level-2") and pages.all("#system .chart")
        pages.chrome.execute_script("document.getElementById('truth-head').scrollIntoView()")
        pages.picture("view-trial")
        assert pages.chrome.execute_script("return window.broken") is None
