"""Load generators: what they put into a cluster, and what they read back."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from srearena.cluster import Cluster
from srearena.generators.workload import bhotelwrk
from srearena.generators.workload.bhotelwrk import BHotelWrk
from srearena.generators.workload.locust import Locust
from srearena.generators.workload.locust_stats import read_statistics, read_table
from srearena.generators.workload.mix import read_mix, write_mix
from srearena.generators.workload.shapes import Constant, Ramp, Spike
from srearena.generators.workload.user_mix import UserMix
from srearena.generators.workload.wrk import Wrk
from srearena.generators.workload.wrk_log import read_log
from srearena.service.apps import find_application
from srearena.service.errors import ApplicationError
from srearena.service.kubernetes import Kubernetes

from .stand_ins import standing_in_for

SCRIPT = "-- route: GET /a weight=3 name=first\n-- route: POST /b\nfunction request() end\n"
LUA = shutil.which("lua5.1") or shutil.which("lua")

LOG = """Running wrk2 on round #1
Running 30s test @ http://frontend:5000
  3 threads and 100 connections
  Thread calibration: mean lat.: 2.335ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     99%   +/- Stdev
    Latency     2.44ms    1.05ms   6.02ms   71.56%
    Req/Sec    34.85     62.61   222.00     77.93%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    2.26ms
 75.000%    2.99ms
 90.000%    3.81ms
 99.000%    6.02ms
 99.900%   10.10ms
 99.990%  850.00us
 99.999%    1.20s
100.000%    1.50m

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.571     0.000000            1         1.00
       4.500     0.950000         2815        20.00
      14.007     1.000000         2964          inf
#[Mean    =        2.440, StdDeviation   =        1.051]
----------------------------------------------------------
  2964 requests in 30.00s, 1.50MB read
  Socket errors: connect 0, read 1, write 0, timeout 35
  Non-2xx or 3xx responses: 64
Requests/sec:     98.80
Transfer/sec:     51.20KB
Running wrk2 on round #2
Running 30s test @ http://frontend:5000
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.00ms
  3000 requests in 30.00s, 12.00KB read
Requests/sec:    100.00
Transfer/sec:      0.40KB
Running wrk2 on round #3
Running 30s test @ http://frontend:5000
"""


def test_wrks_log_is_read_round_by_round() -> None:
    result = read_log(LOG)
    assert result is not None
    first, second = result.rounds
    assert (first.number, first.requests, first.seconds, first.throughput) == (1, 2964, 30.0, 98.8)
    assert first.bytes == 1.5 * 1024**2
    assert first.errors == {"read": 1, "timeout": 35, "status": 64}
    assert first.success_ratio == pytest.approx(2900 / 3000)
    assert first.percentiles[50] == pytest.approx(0.00226) and first.percentiles[100] == 90.0
    assert first.percentile(95) == pytest.approx(0.0045), "from the detailed spectrum"
    assert second.errors == {} and second.success_ratio == 1 and second.percentile(95) == 0.001
    assert result.last is second and result.requests == 5964
    assert result.throughput == pytest.approx(5964 / 60)
    assert result.errors == {"read": 1, "timeout": 35, "status": 64}


@pytest.mark.parametrize("text", ["", "Running wrk2 on round #1\nunable to connect to frontend:5000\n"])
def test_a_log_without_a_finished_round_has_no_result(text: str) -> None:
    assert read_log(text) is None


def test_a_script_says_what_it_sends() -> None:
    routes = read_mix(SCRIPT)
    assert [(r.method, r.path, r.weight, r.name) for r in routes] == [("GET", "/a", 3, "first"), ("POST", "/b", 1, "")]
    assert read_mix(write_mix(routes, "#")) == routes
    with pytest.raises(ApplicationError, match="must declare its requests"):
        read_mix("function request() end")
    with pytest.raises(ApplicationError, match="weight is a number"):
        read_mix("-- route: GET / weight=heavy")


@pytest.mark.skipif(LUA is None, reason="lua is not installed")
@pytest.mark.parametrize("name", ["hotel_reservation", "social_network"])
def test_our_scripts_send_what_they_say(name: str, tmp_path: Path) -> None:
    assert LUA is not None
    script = find_application(name).folder / "workload" / "mixed.lua"
    runner = tmp_path / "run.lua"
    runner.write_text(
        "wrk = {format = function(method, path) return method .. ' ' .. path end}\n"
        f"dofile({str(script)!r}) init({{}}) math.randomseed(7)\n"
        "for _ = 1, 20000 do print((request():match('^%u+ [^?]+'))) end\n"
    )
    sent = Counter(subprocess.run([LUA, str(runner)], capture_output=True, text=True, check=True).stdout.splitlines())
    routes = read_mix(script.read_text())
    total = sum(route.weight for route in routes)
    assert set(sent) == {f"{route.method} {route.path}" for route in routes}
    for route in routes:
        share = sent[f"{route.method} {route.path}"] / 20000
        assert share == pytest.approx(route.weight / total, rel=0.4, abs=0.002)


def test_the_script_of_a_constant_load_is_a_loop_of_rounds(tmp_path: Path) -> None:
    wrk = Wrk("http://frontend:5000", SCRIPT, "mixed.lua", Constant(100), connections=100, duration=30, threads=3)
    assert wrk.rates() == ["100"]
    output = run_script(wrk, tmp_path, rounds=3)
    line = "-t 3 -c 100 -d 30s -R 100 -D exp -L -s /scripts/mixed.lua http://frontend:5000"
    assert output == [part for n in (1, 2, 3) for part in (f"Running wrk2 on round #{n}", line)]


def test_a_changing_load_is_sent_in_rounds_of_different_rates(tmp_path: Path) -> None:
    ramp = Wrk("http://x", SCRIPT, load=Ramp(0, 310, 124), duration=30, threads=1, connections=1)
    assert ramp.rates() == ["38", "115", "192", "270", "310"]
    rates = [word.split(" -R ")[1].split()[0] for word in run_script(ramp, tmp_path, rounds=7) if " -R " in word]
    assert rates == ["38", "115", "192", "270", "310", "310", "310"]
    spike = Wrk("http://x", SCRIPT, load=Spike(100, 600, 62, 31), duration=30, threads=1, connections=1)
    assert spike.rates() == ["100", "100", "600", "100"]


def run_script(wrk: Wrk, folder: Path, rounds: int) -> list[str]:
    """Run the shell script with a real bash; `wrk` says how it was called, and the last round's pause ends it all."""
    (folder / "wrk").write_text('#!/bin/sh\necho "$@"\n')
    (folder / "sleep").write_text(
        f"#!/bin/sh\necho x >> {folder}/n\n[ $(wc -l < {folder}/n) -ge {rounds} ] && kill $PPID\n"
    )
    for name in ("wrk", "sleep"):
        (folder / name).chmod(0o755)
    script = f'PATH="{folder}:$PATH"\n{wrk.shell_script()}'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False).stdout.splitlines()


def test_the_job_is_replaced_when_its_settings_change_and_goes_when_it_is_stopped(
    cluster: Cluster, api: Kubernetes
) -> None:
    application = find_application("hotel-reservation")
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": application.namespace}})
    application.start_workload(cluster)
    cluster.wait(20)
    job = api.get("jobs", "wrk2-job", application.namespace)
    assert job["metadata"]["labels"] == {"job": "workload"}
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "deathstarbench/wrk2-client:latest"
    assert container["args"] == ["/bin/bash", "/scripts/wrk2-workload.sh"]
    config = api.get("configmaps", "wrk2-payload-script", application.namespace)["data"]
    assert set(config) == {"mixed.lua", "wrk2-workload.sh"}
    assert config["mixed.lua"].startswith("-- shape: constant rate=100\n-- Hotel Reservation")
    application.start_workload(cluster, rate={"shape": "spike", "base": 100, "peak": 900, "at": 60, "lasting": 30})
    again = api.get("jobs", "wrk2-job", application.namespace)
    assert again["metadata"]["uid"] != job["metadata"]["uid"]
    assert " 850 " in api.get("configmaps", "wrk2-payload-script", application.namespace)["data"]["wrk2-workload.sh"]
    application.stop_workload(cluster)
    application.stop_workload(cluster)
    assert api.list("jobs", application.namespace) == []
    cluster.wait(60)
    assert api.list("pods", application.namespace) == []


@pytest.mark.parametrize(
    ("settings", "output"),
    [
        ({"rate": -1}, "cannot be negative"),
        ({"rat": 1}, "the workload's settings do not fit its driver 'wrk': .*'rat'"),
        ({"script": "gone.lua"}, "the script of the workload does not exist: 'gone.lua'"),
        ({"url": "frontend"}, "an address that starts with http://"),
        ({"connections": 1}, "a connection for each"),
        ({"driver": "wrkk"}, "no workload driver 'wrkk': did you mean 'wrk'"),
    ],
)
def test_wrong_settings_of_a_load_are_explained(settings: dict[str, object], output: str) -> None:
    with pytest.raises(ApplicationError, match=output):
        find_application("hotel-reservation").workload(**settings)


def test_a_workload_file_with_a_mistake_is_explained(tmp_path: Path) -> None:
    from srearena.service.apps import Application

    (tmp_path / "metadata.json").write_text(json.dumps({"Name": "Toy", "Namespace": "toy"}))
    toy = Application(tmp_path / "metadata.json")
    assert toy.workload() is None
    (tmp_path / "workload.yaml").write_text("rate: 3\n")
    with pytest.raises(
        ApplicationError, match=r"workload\.yaml: a workload needs a driver: one of bhotelwrk, locust, wrk"
    ):
        toy.workload()
    (tmp_path / "workload.yaml").write_text("a: [\n")
    with pytest.raises(ApplicationError, match=r"workload\.yaml is not YAML"):
        toy.workload()


def test_the_blueprint_generator_runs_once_or_for_ever(cluster: Cluster, api: Kubernetes) -> None:
    application = find_application("blueprint-hotel-reservation")
    space = application.namespace
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    application.start_workload(cluster, rate=500, multiplier=6, duration=120)
    settings = api.get("configmaps", "bhotelwrk-wlgen-env", space)["data"]
    assert (settings["TPUT"], settings["DURATION"], settings["MULTIPLIER"]) == ("500", "120s", "6")
    assert api.get("jobs", "bhotelwrk-wlgen-job", space)["spec"]["backoffLimit"] == 0
    application.stop_workload(cluster)
    application.start_workload(cluster, continuous=True, replicas=3)
    assert api.get("deploy", "bhotelwrk-wlgen", space)["spec"]["replicas"] == 3
    application.stop_workload(cluster)
    assert api.list("deploy", space) == [] and api.list("jobs", space) == []
    assert BHotelWrk(rate=10, multiplier=6).load == Spike(10, 60, 60, 30)
    assert BHotelWrk(rate=10, multiplier=1).load == Constant(10)


def test_the_blueprint_generators_log_is_read() -> None:
    log = """Finished all requests
Start time: 2026-08-01T10:00:00.000000Z
Total requests: 360000
Total errors: 36
Throughput (req/s): 2999.5
Latency distribution
p50: 2.10ms
p99: 1.5s
p99.9: 300us
End of latency distribution
"""
    result = bhotelwrk.read_log("starting\n" + log)
    assert result is not None and result.started == "2026-08-01T10:00:00.000000Z"
    assert (result.requests, result.errors, result.throughput) == (360000, 36, 2999.5)
    assert result.success_ratio == pytest.approx(0.9999)
    assert result.percentiles == pytest.approx({50: 0.0021, 99: 1.5, 99.9: 0.0003})
    assert bhotelwrk.read_log("starting\nFinished all requests\n") is None


def test_an_applications_own_locust_is_stopped_started_and_resized(cluster: Cluster, api: Kubernetes) -> None:
    application = find_application("online-boutique")
    with standing_in_for([application]):
        application.deploy(cluster)
        application.stop_workload(cluster)
        assert api.get("deploy", "loadgenerator", application.namespace)["spec"]["replicas"] == 0
        application.start_workload(cluster, users=50, spawn_rate=5)
        spec = api.get("deploy", "loadgenerator", application.namespace)["spec"]
        variables = {v["name"]: v["value"] for v in spec["template"]["spec"]["containers"][0]["env"]}
        assert spec["replicas"] == 1
        assert variables == {"FRONTEND_ADDR": "frontend:80", "USERS": "50", "RATE": "5"}


def test_a_locust_that_is_told_by_arguments_is_told_so(cluster: Cluster, api: Kubernetes) -> None:
    words = ["-f", "/mnt/locust/locustfile.py", "--users", "5", "--spawn-rate", "1", "--autostart"]
    template = {"spec": {"containers": [{"name": "main", "image": "locustio/locust:2.14.2", "args": words}]}}
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "load-generator"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, **template},
        },
    }
    api.apply(obj)
    Locust(users=40).start(api, "default")
    container = api.get("deploy", "load-generator")["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == [*words[:3], "40", *words[4:]] and "env" not in container
    generation = api.get("deploy", "load-generator")["metadata"]["generation"]
    Locust(users=40).start(api, "default")
    assert api.get("deploy", "load-generator")["metadata"]["generation"] == generation


MIX = {
    "wait": [1, 3],
    "tasks": [
        {"name": "look", "weight": 3, "requests": [{"path": "/"}, {"path": "/cart"}]},
        {"name": "buy", "requests": [{"path": "/buy", "method": "POST", "json": {"id": 1}, "name": "buy it"}]},
    ],
}


def test_a_mix_of_users_is_a_locustfile() -> None:
    mix = UserMix.parse(MIX)
    text = mix.locustfile()
    compile(text, "locustfile.py", "exec")
    assert [str(route) for route in read_mix(text)] == [
        "route: GET / weight=3 name=look",
        "route: GET /cart weight=3 name=look",
        "route: POST /buy weight=1 name=buy",
    ]
    assert "wait_time = between(1, 3)" in text and "self.client.post('/buy', json={'id': 1}, name='buy it')" in text


@pytest.mark.parametrize("change", [{"tasks": []}, {"wait": [3, 1]}, {"tasks": [{"name": "x"}]}, {"wait": 3}])
def test_an_impossible_mix_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ApplicationError, match=r"users|mix"):
        UserMix.parse({**MIX, **change})


def test_a_mix_of_users_is_deployed_and_taken_away(cluster: Cluster, api: Kubernetes) -> None:
    locust = Locust(users=4, host="http://web:80", mix=UserMix.parse(MIX))
    locust.start(api, "default")
    cluster.wait(20)
    container = api.get("deploy", "load-generator")["spec"]["template"]["spec"]["containers"][0]
    assert {v["name"]: v["value"] for v in container["env"]}["LOCUST_USERS"] == "4"
    assert "locustfile.py" in api.get("cm", "load-generator")["data"]
    locust.stop(api, "default")
    assert api.find("deploy", "load-generator") is None and api.find("svc", "load-generator") is None
    with pytest.raises(ApplicationError, match="needs a host, such as"):
        Locust(mix=UserMix.parse(MIX))


def test_locusts_statistics_are_read() -> None:
    row = {"method": "GET", "name": "/", "num_requests": 10, "num_failures": 1, "median_response_time": 20}
    total = {**row, "method": "", "name": "Aggregated", "avg_response_time": 25.0, "current_rps": 1.5}
    document = {
        "stats": [row, total],
        "errors": [{"error": "HTTPError('500')", "occurrences": 1}],
        "user_count": 10,
        "current_response_time_percentiles": {"response_time_percentile_0.5": 20, "response_time_percentile_0.95": 80},
    }
    result = read_statistics(document)
    assert result is not None and result.users == 10 and result.throughput == 1.5
    assert result.total.success_ratio == 0.9 and result.total.average == 0.025
    assert [r.name for r in result.rows] == ["/"]
    assert result.percentiles == {50: 0.02, 95: 0.08} and result.errors == {"HTTPError('500')": 1}
    assert read_statistics({"stats": []}) is None


def test_locusts_printed_table_is_read() -> None:
    table = """
Type     Name                          # reqs      # fails |    Avg     Min     Max    Med |   req/s  failures/s
--------|----------------------------|-------|-------------|-------|-------|-------|-------|--------|-----------
GET      /                                 18     0(0.00%) |     32      12     120     25 |    0.20        0.00
POST     /cart/checkout                     4    2(50.00%) |     80      40     120     60 |    0.10        0.05
--------|----------------------------|-------|-------------|-------|-------|-------|-------|--------|-----------
         Aggregated                        22     2(9.09%) |     40      12     120     28 |    0.30        0.05
"""
    result = read_table("earlier\n" + re.sub("18 ", "17 ", table) + table)
    assert result is not None
    assert [(r.method, r.name, r.requests, r.failures) for r in result.rows] == [
        ("GET", "/", 18, 0),
        ("POST", "/cart/checkout", 4, 2),
    ]
    assert result.total.requests == 22 and result.throughput == 0.3 and result.total.median == 0.028
    assert read_table("nothing yet") is None
