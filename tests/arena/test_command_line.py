"""`exec_shell`: kubectl command lines work, and nothing reaches the machine that runs them."""

from __future__ import annotations

import pytest

from srearena.conductor.actions import command_line, kubectl_policy
from srearena.conductor.errors import BadAction

PODS = "NAME  STATUS\nweb-1  Running\napi-1  Pending\napi-2  Running"


class Spy:
    def __init__(self, status: int = 0) -> None:
        self.calls: list[tuple[list[str], str]] = []
        self.slept = 0.0
        self.status = status

    def kubectl(self, words: list[str], stdin: str) -> tuple[int, str]:
        self.calls.append((kubectl_policy.check(words), stdin))
        return self.status, PODS

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

    def run(self, text: str) -> str:
        return command_line.run(text, self.kubectl, self.sleep)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("kubectl get pods | grep api", "api-1  Pending\napi-2  Running"),
        ("kubectl get pods 2>&1 | grep -v Running | tail -n 1", "api-1  Pending"),
        ("kubectl get pods | grep -c Running", "2"),
        ("kubectl get pods | grep -E 'web|api-2' | sort -r | head -1", "web-1  Running"),
        ("kubectl get pods --no-headers | wc -l", "4"),
        (
            "kubectl get pods | tail -n +2 | tr -s ' ' | cut -d ' ' -f 2 | sort | uniq -c",
            "      1 Pending\n      2 Running",
        ),
        ("echo hello", "hello"),
    ],
)
def test_pipes_into_filters(text: str, printed: str) -> None:
    assert Spy().run(text) == printed


def test_a_manifest_comes_from_a_here_document() -> None:
    spy = Spy()
    spy.run("kubectl apply -f - <<'EOF'\nkind: Pod\nspec: {a: \"b | c; d\"}\nEOF\nkubectl get pods")
    assert spy.calls == [
        (["apply", "-f", "-"], 'kind: Pod\nspec: {a: "b | c; d"}\n'),
        (["get", "pods"], ""),
    ]


def test_commands_are_joined_as_a_shell_joins_them() -> None:
    spy = Spy(status=1)
    spy.run("kubectl get a && kubectl get b; kubectl get c || kubectl get d")
    assert [words[1] for words, _ in spy.calls] == ["a", "c", "d"]


def test_words_in_quotes_stay_together_and_are_not_expanded() -> None:
    spy = Spy()
    spy.run("""kubectl patch svc a --type=json -p '[{"op": "remove", "path": "/x"}]' \\\n  -n "$HOME" """)
    assert spy.calls[0][0] == [
        "patch",
        "svc",
        "a",
        "--type=json",
        "-p",
        '[{"op": "remove", "path": "/x"}]',
        "-n",
        "$HOME",
    ]


def test_sleeping_lets_the_clusters_time_pass() -> None:
    spy = Spy()
    spy.run("sleep 30; kubectl get pods")
    assert spy.slept == 30


@pytest.mark.parametrize(
    "text",
    [
        "cat /etc/passwd",
        "ls",
        "kubectl get pods > /tmp/x",
        "kubectl get pods < /etc/passwd",
        "kubectl get pods & kubectl get pods",
        "kubectl get pods | sh",
        "kubectl get pods | grep x /etc/passwd",
        "kubectl get pods | head /etc/passwd",
        "kubectl get pods | xargs kubectl delete",
        "`id`",
        "$(id)",
        "",
        "| grep x",
        "kubectl get 'pods",
    ],
)
def test_what_does_not_run_is_refused(text: str) -> None:
    with pytest.raises(BadAction):
        Spy().run(text)


@pytest.mark.parametrize(
    "text",
    [
        "--kubeconfig=/etc/kubernetes/admin.conf get pods",
        "get pods --kubeconfig /etc/kubernetes/admin.conf",
        "get pods --server=https://elsewhere",
        "-s https://elsewhere get pods",
        "get pods --token=x",
        "apply -f /etc/passwd",
        "apply -f/etc/passwd",
        "apply --filename=/etc/passwd",
        "apply -Rf /etc",
        "apply -k /etc",
        "create configmap x --from-file=/etc/passwd",
        "create secret generic x --from-env-file=/etc/passwd",
        "patch svc a --patch-file=/etc/passwd",
        "get pods -o jsonpath-file=/etc/passwd",
        "get pods -o=custom-columns-file=/etc/passwd",
        "get pods -ogo-template-file=/etc/passwd",
        "get pods -o templatefile --template=/etc/passwd",
        "cp /etc/passwd a:/tmp",
        "proxy --www=/",
        "edit deployment a",
        "port-forward a 80",
        "config view --raw",
        "plugin list",
        "anything",
        "logs -f a",
        "logs a --follow",
        "",
    ],
)
def test_kubectl_cannot_be_turned_on_this_machine(text: str) -> None:
    with pytest.raises(BadAction):
        kubectl_policy.check(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "get pods -A -o wide",
        "-n shop get pods",
        "logs -p web-1 --tail=5",
        "logs web-1 -c web",
        "get pods -o jsonpath={.items[*].metadata.name}",
        "get pods -o go-template={{.items}}",
        "exec web-1 -- cat -f /etc/hosts --kubeconfig=x",
        "rollout undo deployment/web",
        "apply -f -",
        "delete pod web-1 --force --grace-period=0",
        "get --raw /api/v1/namespaces/shop/services/web:80/proxy/",
    ],
)
def test_ordinary_commands_pass_as_they_are(text: str) -> None:
    assert kubectl_policy.check(text.split()) == text.split()
