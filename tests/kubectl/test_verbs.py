"""Every verb of the real kubectl, each at least once, on one cluster."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from srearena.cluster import start_embedded

from .operator import KUBECTL, Operator

CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """A cluster with a web deployment, its service and a shell to look from."""
    with start_embedded(in_process=True) as cluster:
        operator = Operator(cluster, tmp_path_factory.mktemp("home"))
        operator.kubectl("create", "deployment", "web", "--image=nginx:1.27", "--replicas=3", "--port=80")
        operator.kubectl("expose", "deployment", "web", "--port=80")
        operator.kubectl("run", "shell", "--image=busybox:1.36", "--", "sh", "-c", "while true; do date; sleep 5; done")
        operator.wait(30)
        yield operator


class TestLooking:
    def test_get_in_every_shape(self, shop: Operator) -> None:
        names = shop.kubectl("get", "pods", "-l", "app=web", "-o", "name").split()
        assert len(names) == 3 and all(name.startswith("pod/web-") for name in names)
        assert shop.path("{.items[*].status.phase}", "pods", "-l", "app=web") == "Running Running Running"
        table = shop.kubectl("get", "pods", "-l", "app=web", "-o", "custom-columns=P:.status.phase", "--no-headers")
        assert table.split() == ["Running"] * 3
        wide = shop.columns("deployment", "web", "-o", "wide")
        assert wide[0][-3:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
        assert wide[1][-3:] == ["nginx", "nginx:1.27", "app=web"]
        assert yaml.safe_load(shop.kubectl("get", "deploy", "web", "-o", "yaml"))["spec"]["replicas"] == 3
        assert shop.kubectl("get", "pods", "-o", "go-template={{len .items}}") == "4"

    def test_get_all_shows_the_workload_with_everything_it_made(self, shop: Operator) -> None:
        text = shop.kubectl("get", "all")
        for name in ("deployment.apps/web", "replicaset.apps/web-", "pod/web-", "service/web"):
            assert name in text

    def test_selectors_sorting_and_paging(self, shop: Operator) -> None:
        paged = shop.kubectl("get", "pods", "-A", "--chunk-size=2", "-o", "name")
        assert paged == shop.kubectl("get", "pods", "-A", "-o", "name")
        assert shop.kubectl("get", "pods", "-l", "app in (web),pod-template-hash", "-o", "name").count("pod/") == 3
        assert "shell" in shop.kubectl("get", "pods", "-l", "app!=web")
        node = shop.path("{.items[0].spec.nodeName}", "pods", "-l", "app=web")
        on_node = shop.get("pods", "--field-selector", f"spec.nodeName={node}")["items"]
        assert {pod["spec"]["nodeName"] for pod in on_node} == {node}
        sorted_names = shop.kubectl("get", "pods", "--sort-by=.metadata.name", "-o", "name").split()
        assert sorted_names == sorted(sorted_names)

    def test_pages_join_without_gaps_where_names_share_a_beginning(self, shop: Operator) -> None:
        for namespace in ("team", "team-a"):
            shop.kubectl("create", "namespace", namespace)
            shop.kubectl("create", "configmap", "note", "-n", namespace)
        whole = shop.kubectl("get", "configmaps", "-A", "--no-headers", "-o", "custom-columns=N:.metadata.namespace")
        paged = shop.kubectl(
            "get", "configmaps", "-A", "--chunk-size=1", "--no-headers", "-o", "custom-columns=N:.metadata.namespace"
        )
        assert paged == whole
        assert whole.index("team-a") < whole.index("team\n"), "etcd sorts whole keys: a dash comes before the slash"

    def test_missing_things_are_named(self, shop: Operator) -> None:
        assert shop.fails("get", "pod", "nobody") == 'Error from server (NotFound): pods "nobody" not found\n'
        assert shop.fails("get", "gadgets") == 'error: the server doesn\'t have a resource type "gadgets"\n'
        assert "No resources found in kube-public namespace." in shop.run("get", "pods", "-n", "kube-public").err
        bad = shop.fails("get", "pods", "--field-selector", "spec.colour=blue")
        assert "field label not supported: spec.colour" in bad

    @pytest.mark.parametrize(
        ("thing", "expected"),
        [
            ("deployment/web", "NewReplicaSet:"),
            ("pod/shell", "Container ID:"),
            ("service/web", "Endpoints:"),
            ("node/worker-1", "Allocated resources:"),
            ("namespace/default", "No resource quota."),
            ("serviceaccount/default", "Image pull secrets:"),
            ("storageclass/standard", "VolumeBindingMode:"),
            ("clusterrole/view", "PolicyRule:"),
        ],
    )
    def test_describe(self, shop: Operator, thing: str, expected: str) -> None:
        assert expected in shop.kubectl("describe", thing)

    def test_watch_shows_changes_as_they_happen(self, shop: Operator) -> None:
        assert KUBECTL is not None
        shop.kubectl("create", "configmap", "seen", "--from-literal=step=one")
        watching = subprocess.Popen(
            [KUBECTL, "get", "configmap", "seen", "-w", "-o", "jsonpath={.data.step}{'\\n'}"],
            env={"KUBECONFIG": str(shop.cluster.kubeconfig), "HOME": str(shop.home)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert watching.stdout is not None
        try:
            assert watching.stdout.readline() == "one\n"
            shop.kubectl("patch", "configmap", "seen", "-p", '{"data":{"step":"two"}}')
            assert watching.stdout.readline() == "two\n"
        finally:
            watching.kill()
            watching.communicate()

    def test_explain_knows_every_field(self, shop: Operator) -> None:
        assert "maxSurge" in shop.kubectl("explain", "deployment.spec.strategy.rollingUpdate")
        assert "KIND:       Pod" in shop.kubectl("explain", "pod", "--recursive")
        assert "does not exist" in shop.fails("explain", "pod.spec.colour")

    def test_discovery(self, shop: Operator) -> None:
        resources = shop.kubectl("api-resources", "--namespaced=true", "-o", "name").split()
        assert {"pods", "deployments.apps", "ingresses.networking.k8s.io", "events.events.k8s.io"} <= set(resources)
        assert "autoscaling/v2" in shop.kubectl("api-versions").split()
        assert json.loads(shop.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"].startswith("v1.34")
        assert "is running at" in shop.kubectl("cluster-info")

    def test_deprecated_resources_warn(self, shop: Operator) -> None:
        warned = shop.run("get", "endpoints", "web").err
        assert warned == "Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\n"
        assert "v1 ComponentStatus is deprecated in v1.19+" in shop.run("get", "componentstatuses").err

    def test_events(self, shop: Operator) -> None:
        assert "Created container: shell" in shop.kubectl("events", "--for", "pod/shell")
        assert "Scheduled" in shop.kubectl("get", "events", "--field-selector", "involvedObject.name=shell")

    def test_top(self, shop: Operator) -> None:
        shop.wait(90)
        assert "web-" in shop.kubectl("top", "pods")
        assert "worker-1" in shop.kubectl("top", "nodes")

    def test_auth(self, shop: Operator) -> None:
        assert shop.kubectl("auth", "can-i", "delete", "nodes").strip() == "yes"
        refused = shop.run("auth", "can-i", "list", "pods", "--as", "bob")
        assert (refused.code, refused.out.strip()) == (1, "no")
        assert "kubernetes-admin" in shop.kubectl("auth", "whoami")
        message = shop.fails("get", "pods", "--as", "bob")
        assert (
            'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"'
            in message
        )

    def test_config_view_hides_nothing_it_should_show(self, shop: Operator) -> None:
        view = yaml.safe_load(shop.kubectl("config", "view"))
        assert view["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")


class TestChanging:
    def test_apply_is_declarative(self, shop: Operator) -> None:
        assert shop.apply(CONFIG) == "configmap/settings created\n"
        assert shop.apply(CONFIG) == "configmap/settings unchanged\n"
        assert shop.apply(CONFIG.replace("blue", "red")) == "configmap/settings configured\n"
        difference = shop.run("diff", "-f", "-", stdin=CONFIG.replace("blue", "green"))
        assert difference.code == 1
        assert "-  colour: red" in difference.out and "+  colour: green" in difference.out
        shop.kubectl("replace", "-f", "-", stdin=CONFIG)
        assert shop.path("{.data.colour}", "configmap", "settings") == "blue"

    def test_server_side_apply_defends_what_others_own(self, shop: Operator) -> None:
        first = CONFIG.replace("settings", "owned")
        shop.kubectl("apply", "--server-side", "--field-manager=alice", "-f", "-", stdin=first)
        conflict = shop.fails(
            "apply", "--server-side", "--field-manager=bob", "-f", "-", stdin=first.replace("blue", "red")
        )
        assert 'conflict with "alice"' in conflict and ".data.colour" in conflict
        shop.kubectl(
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=bob",
            "-f",
            "-",
            stdin=first.replace("blue", "red"),
        )
        assert shop.path("{.data.colour}", "configmap", "owned") == "red"

    def test_apply_prunes_what_is_no_longer_there(self, shop: Operator) -> None:
        def named(name: str) -> str:
            return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{set: pruned}}}}\n"

        shop.apply(named("one"), named("two"))
        shop.kubectl(
            "apply", "-f", "-", "--prune", "-l", "set=pruned", "--prune-allowlist=core/v1/ConfigMap", stdin=named("one")
        )
        assert shop.kubectl("get", "configmap", "-l", "set=pruned", "-o", "name").split() == ["configmap/one"]

    def test_kustomize(self, shop: Operator, tmp_path: Path) -> None:
        overlay = {
            "namePrefix": "dev-",
            "configMapGenerator": [
                {"name": "made", "literals": ["a=b"], "options": {"disableNameSuffixHash": True}},
            ],
        }
        (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        shop.kubectl("apply", "-k", str(tmp_path))
        assert shop.path("{.data.a}", "configmap", "dev-made") == "b"

    def test_bad_manifests_are_refused_by_name(self, shop: Operator) -> None:
        typo = CONFIG.replace("\ndata:", "\ndta:").replace("settings", "typo")
        assert 'unknown field "dta"' in shop.fails("apply", "-f", "-", stdin=typo)
        wrong = '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"replicas":"many"}}'
        assert "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32" in shop.fails(
            "create", "--validate=false", "-f", "-", stdin=wrong
        )
        assert shop.fails("create", "configmap", "settings") == (
            'error: failed to create configmap: configmaps "settings" already exists\n'
        )

    def test_patch_in_all_four_ways(self, shop: Operator) -> None:
        shop.apply(CONFIG.replace("settings", "patched"))
        shop.kubectl("patch", "configmap", "patched", "-p", '{"data":{"a":"1"}}')
        shop.kubectl("patch", "configmap", "patched", "--type=merge", "-p", '{"data":{"b":"2"}}')
        operations = '[{"op":"add","path":"/data/c","value":"3"},{"op":"remove","path":"/data/colour"}]'
        shop.kubectl("patch", "configmap", "patched", "--type=json", "-p", operations)
        assert shop.get("configmap", "patched")["data"] == {"a": "1", "b": "2", "c": "3"}
        same = shop.kubectl("patch", "configmap", "patched", "-p", '{"data":{"a":"1"}}')
        assert same == "configmap/patched patched (no change)\n"

    def test_label_annotate_and_edit(self, shop: Operator) -> None:
        shop.apply(CONFIG.replace("settings", "edited"))
        shop.kubectl("label", "configmap", "edited", "tier=back")
        assert "overwrite is false" in shop.fails("label", "configmap", "edited", "tier=front")
        shop.kubectl("label", "configmap", "edited", "tier-")
        shop.kubectl("annotate", "configmap", "edited", "note=kept")
        shop.extra["KUBE_EDITOR"] = "sed -i s/blue/yellow/"
        try:
            shop.kubectl("edit", "configmap", "edited")
        finally:
            shop.extra.clear()
        edited = shop.get("configmap", "edited")
        assert edited["data"] == {"colour": "yellow"}
        assert edited["metadata"]["annotations"]["note"] == "kept"
        assert "tier" not in edited["metadata"].get("labels", {})

    def test_create_makes_every_common_kind(self, shop: Operator) -> None:
        commands = (
            "secret generic s1 --from-literal=a=b",
            "serviceaccount robot",
            "role reader --verb=get,list --resource=pods",
            "rolebinding reads --role=reader --serviceaccount=default:robot",
            "clusterrole sweeper --verb=delete --resource=pods",
            "clusterrolebinding sweeps --clusterrole=sweeper --user=bob",
            "job once --image=busybox -- true",
            "cronjob often --image=busybox --schedule=*/5_*_*_*_* -- true",
            "ingress front --rule=example.com/*=web:80",
            "poddisruptionbudget guard --selector=app=web --min-available=1",
            "priorityclass high --value=1000",
            "quota small --hard=count/gadgets.example.com=3",
            "service clusterip plain --tcp=80:80",
            "service externalname away --external-name=example.com",
        )
        for command in commands:
            shop.kubectl("create", *(word.replace("_", " ") for word in command.split()))
        assert (
            shop.kubectl("auth", "can-i", "list", "pods", "--as=system:serviceaccount:default:robot").strip() == "yes"
        )
        assert len(shop.kubectl("create", "token", "robot").split(".")) == 3

    def test_delete_with_each_propagation(self, shop: Operator) -> None:
        def replica_sets(name: str) -> list[str]:
            return shop.kubectl("get", "rs", "-l", f"app={name}", "-o", "name").split()

        for name in ("back", "fore", "keep"):
            shop.kubectl("create", "deployment", name, "--image=nginx:1.27")
        shop.wait(20)
        shop.kubectl("delete", "deployment", "back")
        shop.kubectl("delete", "deployment", "fore", "--cascade=foreground", "--wait=false")
        shop.kubectl("delete", "deployment", "keep", "--cascade=orphan")
        shop.wait(60)
        assert (replica_sets("back"), replica_sets("fore")) == ([], [])
        assert len(replica_sets("keep")) == 1
        shop.kubectl("delete", "rs", "-l", "app=keep")

    def test_dry_run_changes_nothing(self, shop: Operator) -> None:
        out = shop.kubectl("create", "configmap", "ghost", "--from-literal=a=b", "--dry-run=server")
        assert out == "configmap/ghost created (server dry run)\n"
        assert "NotFound" in shop.fails("get", "configmap", "ghost")


class TestWorkloads:
    def test_scale_rollout_and_set(self, shop: Operator) -> None:
        shop.kubectl("create", "deployment", "app", "--image=nginx:1.27")
        shop.kubectl("scale", "deployment/app", "--replicas=2")
        shop.wait(30)
        assert "successfully rolled out" in shop.kubectl("rollout", "status", "deployment/app", "--timeout=10s")
        shop.kubectl("set", "image", "deployment/app", "nginx=nginx:1.28")
        shop.wait(40)
        shop.kubectl("set", "env", "deployment/app", "MODE=fast")
        shop.kubectl("set", "resources", "deployment/app", "--requests=cpu=10m")
        shop.kubectl("set", "serviceaccount", "deployment/app", "default")
        shop.wait(40)
        assert shop.kubectl("rollout", "history", "deployment/app").count("<none>") >= 3
        shop.kubectl("rollout", "undo", "deployment/app", "--to-revision=1")
        shop.wait(40)
        assert shop.path("{.spec.template.spec.containers[0].image}", "deployment", "app") == "nginx:1.27"
        shop.kubectl("rollout", "pause", "deployment/app")
        assert "can't restart paused deployment" in shop.fails("rollout", "restart", "deployment/app")
        shop.kubectl("rollout", "resume", "deployment/app")
        shop.kubectl("rollout", "restart", "deployment/app")
        shop.wait(40)
        template = shop.get("deployment", "app")["spec"]["template"]
        assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
        shop.kubectl("autoscale", "deployment/app", "--min=1", "--max=3", "--cpu-percent=50")
        assert "Deployment/app" in shop.kubectl("get", "hpa", "app")
        shop.kubectl("delete", "deployment/app", "hpa/app")

    def test_wait_returns_when_it_comes_true(self, shop: Operator) -> None:
        shop.kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=5s")
        shop.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/shell", "--timeout=5s")
        assert "timed out" in shop.fails("wait", "--for=condition=Ready=false", "pod/shell", "--timeout=1s")

    def test_taint_cordon_and_drain(self, shop: Operator) -> None:
        shop.kubectl("taint", "node", "worker-1", "key=value:NoSchedule")
        assert shop.path("{.spec.taints[?(@.key=='key')].value}", "node", "worker-1") == "value"
        shop.kubectl("taint", "node", "worker-1", "key-")
        shop.kubectl("cordon", "worker-2")
        assert shop.columns("node", "worker-2")[1][1] == "Ready,SchedulingDisabled"
        words = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=50s")
        drained = shop.run("drain", "worker-2", *words)
        assert "node/worker-2 drained" in drained.out, drained.err
        shop.kubectl("uncordon", "worker-2")
        assert shop.columns("node", "worker-2")[1][1] == "Ready"


class TestInside:
    def test_logs(self, shop: Operator) -> None:
        assert len(shop.kubectl("logs", "shell", "--tail=2").splitlines()) == 2
        assert shop.kubectl("logs", "shell", "--tail=1", "--timestamps").split()[0].endswith("Z")
        assert shop.kubectl("logs", "shell", "--since=1s") in shop.kubectl("logs", "shell")
        assert len(shop.kubectl("logs", "-l", "app=web", "--prefix", "--tail=1").splitlines()) == 3
        assert "previous terminated container" in shop.fails("logs", "shell", "--previous")
        assert "container nobody is not valid" in shop.fails("logs", "shell", "-c", "nobody")

    def test_logs_follow(self, shop: Operator) -> None:
        assert KUBECTL is not None
        following = subprocess.Popen(
            [KUBECTL, "logs", "-f", "shell", "--tail=1"],
            env={"KUBECONFIG": str(shop.cluster.kubeconfig), "HOME": str(shop.home)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert following.stdout is not None
        try:
            first = following.stdout.readline()
            shop.wait(6)
            assert following.stdout.readline() != first
        finally:
            following.kill()
            following.communicate()

    def test_exec(self, shop: Operator) -> None:
        assert shop.kubectl("exec", "shell", "--", "hostname") == "shell\n"
        assert shop.run("exec", "shell", "--", "sh", "-c", "exit 7").code == 7
        assert shop.kubectl("exec", "-i", "shell", "--", "cat", stdin="hello\n") == "hello\n"
        page = shop.kubectl("exec", "shell", "--", "sh", "-c", "wget -qO- http://web | grep -c nginx")
        assert int(page) >= 1
        missing = shop.fails("exec", "shell", "--", "nosuchtool")
        assert 'exec: "nosuchtool": executable file not found in $PATH' in missing

    def test_exec_with_a_terminal(self, shop: Operator) -> None:
        pexpect = pytest.importorskip("pexpect")
        assert KUBECTL is not None
        child = pexpect.spawn(
            KUBECTL,
            ["exec", "-it", "shell", "--", "sh"],
            env={"KUBECONFIG": str(shop.cluster.kubeconfig), "HOME": str(shop.home), "TERM": "xterm"},
            timeout=10,
            encoding="utf-8",
        )
        child.expect("# ")
        child.sendline("echo $((6*7))")
        child.expect("42")
        child.sendline("exit 3")
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 3

    def test_cp_both_ways(self, shop: Operator, tmp_path: Path) -> None:
        (tmp_path / "note").write_text("carried in\n")
        shop.kubectl("cp", str(tmp_path / "note"), "shell:/tmp/note")
        assert shop.kubectl("exec", "shell", "--", "cat", "/tmp/note") == "carried in\n"
        shop.kubectl("cp", "shell:/etc/resolv.conf", str(tmp_path / "resolv"))
        assert "nameserver 10.96.0.10" in (tmp_path / "resolv").read_text()

    def test_port_forward(self, shop: Operator) -> None:
        assert KUBECTL is not None
        forward = subprocess.Popen(
            [KUBECTL, "port-forward", "service/web", ":80"],
            env={"KUBECONFIG": str(shop.cluster.kubeconfig), "HOME": str(shop.home)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert forward.stdout is not None
        try:
            line = forward.stdout.readline()
            port = line.split(":")[1].split()[0]
            with urlopen(f"http://127.0.0.1:{port}/", timeout=10) as page:
                assert b"Welcome to nginx" in page.read()
        finally:
            forward.kill()
            forward.communicate()

    def test_debug_adds_a_container(self, shop: Operator) -> None:
        shop.kubectl("debug", "shell", "--image=busybox:1.36", "-c", "extra", "--", "sleep", "1d")
        shop.wait(10)
        extra = shop.get("pod", "shell")["status"]["ephemeralContainerStatuses"][0]
        assert extra["name"] == "extra" and "running" in extra["state"]

    def test_run_attaches_and_reports_the_exit_code(self, shop: Operator) -> None:
        stop = threading.Event()

        def flow() -> None:
            while not stop.is_set():
                shop.wait(1)
                time.sleep(0.05)

        pushing = threading.Thread(target=flow)
        pushing.start()
        try:
            out = shop.run("run", "oneoff", "--image=busybox:1.36", "--restart=Never", "--rm", "-i", "--", "echo", "hi")
        finally:
            stop.set()
            pushing.join()
        assert "hi" in out.out, out.err
