"""kubectl commands are parsed as kubectl does: by properties, against its help, and against its parser."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.conductor.actions import kubectl_policy
from srearena.conductor.actions.kubectl_command import OPTIONAL, SUBCOMMANDS, Argument, KubectlCommand, parse_command
from srearena.conductor.errors import BadAction

SHORT = {"namespace": "n", "output": "o", "selector": "l", "filename": "f", "all-namespaces": "A", "recursive": "R"}
VALUED = ["namespace", "output", "selector", "filename", "field-selector", "replicas", "image", "tail", "as"]
SWITCHED = ["all-namespaces", "recursive", "all", "force", "no-headers", "watch"]

values = st.one_of(
    st.sampled_from(["shop", "-", "--", "-A", "a=b", "json", "delete", "--kubeconfig=x", "", "=", "-1"]),
    st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=8),
)
plain = st.from_regex(r"[a-z][a-z0-9/=.-]{0,8}", fullmatch=True)
pieces = st.one_of(
    plain.map(lambda word: Argument("", word)),
    st.builds(Argument, st.sampled_from(VALUED), values),
    st.sampled_from(SWITCHED).map(lambda name: Argument(name)),
    st.builds(Argument, st.sampled_from(SWITCHED), st.sampled_from(["true", "false"])),
    st.builds(Argument, st.sampled_from(sorted(OPTIONAL)), st.one_of(st.none(), st.just("server"))),
)


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, list[Argument], list[str], list[str]]:
    """A verb, its arguments, words after `--`, and one of many ways to write them."""
    verb = draw(st.sampled_from(["get", "delete", "scale", "describe", "annotate"]))
    arguments = draw(st.lists(pieces, max_size=6))
    remote = draw(st.one_of(st.just([]), st.lists(values, max_size=2).map(lambda words: ["--", *words])))
    ahead = 0  # flags that stand before the verb: there, a switch alone would take the verb for its value
    while (
        ahead < len(arguments) and arguments[ahead].flag and arguments[ahead].value is not None and draw(st.booleans())
    ):
        ahead += 1
    written = [draw(_ways(piece)) for piece in arguments]
    words = [word for part in (*written[:ahead], [verb], *written[ahead:]) for word in part]
    return verb, arguments, remote, [*words, *remote]


def _ways(piece: Argument) -> st.SearchStrategy[list[str]]:
    ways = [[piece.word]]
    short = SHORT.get(piece.flag)
    if piece.value is None:
        ways += [[f"-{short}"]] if short else []
    elif piece.flag in VALUED:
        ways.append([f"--{piece.flag}", piece.value])
        if short:
            ways.append([f"-{short}", piece.value])
            if piece.value and not piece.value.startswith("="):
                ways += [[f"-{short}{piece.value}"], [f"-{short}={piece.value}"]]
    return st.sampled_from(ways)


@given(spelled())
def test_every_spelling_means_the_same(line: tuple[str, list[Argument], list[str], list[str]]) -> None:
    verb, arguments, remote, words = line
    found = parse_command(words)
    assert (found.verb, list(found.arguments), list(found.remote)) == (verb, arguments, remote)
    again = parse_command(found.rewritten())
    assert (again.verb, again.arguments, again.remote) == (found.verb, found.arguments, found.remote)


@given(st.lists(values, max_size=6))
def test_any_words_are_read_or_refused_and_what_passes_names_no_file(words: list[str]) -> None:
    try:
        line = kubectl_policy.checked(["get", *words])
    except BadAction:
        return
    assert not {"kubeconfig", "server", "token"} & {piece.flag for piece in line.arguments}
    assert set(line.values("filename")) <= {"-"}


@pytest.mark.parametrize(
    ("text", "verb", "part", "rest"),
    [
        ("exec -itn shop web-1 -c web -- sh -c ls", "exec", "", "--stdin --tty --namespace=shop web-1 --container=web"),
        ("logs -fp web-1", "logs", "", "--follow --previous web-1"),
        ("apply -Rf -", "apply", "", "--recursive --filename=-"),
        ("get po -Aowide", "get", "", "po --all-namespaces --output=wide"),
        ("get po -n=shop -w=false", "get", "", "po --namespace=shop --watch=false"),
        ("-n rollout rollout -n x undo deploy/a", "rollout", "undo", "--namespace=rollout --namespace=x deploy/a"),
        ("top po --containers", "top", "pod", "--containers"),
        ("set env deploy/a -c web --prefix X_ A=b", "set", "env", "deploy/a --containers=web --prefix=X_ A=b"),
        ("create svc clusterip a --tcp 80", "create", "service", "clusterip a --tcp=80"),
        ("scale deploy a --replicas -1", "scale", "", "deploy a --replicas=-1"),
        ("delete po a --cascade --dry-run", "delete", "", "po a --cascade --dry-run"),
    ],
)
def test_lines_as_people_type_them(text: str, verb: str, part: str, rest: str) -> None:
    line = parse_command(text.split())
    assert (line.verb, line.subcommand, " ".join(piece.word for piece in line.arguments)) == (verb, part, rest)


@pytest.mark.parametrize(
    "words",
    [
        ["get", "pods", "-n", "--", "--kubeconfig=/etc/x"],
        ["get", "pods", "-o", "--", "-s", "http://elsewhere"],
        ["apply", "-f", "-,/etc/passwd"],
        ["apply", "-f=-", "-Rf/etc"],
        ["debug", "web-1", "--custom=/etc/passwd"],
        ["create", "deployment", "a", "--image=b", "--user=admin"],
        ["-w", "get", "pods"],
        ["create", "thing", "x"],
        ["create", "-f", "-", "--edit"],
        ["delete", "pod", "x", "-i"],
        ["apply", "edit-last-applied", "-f", "-"],
        ["--", "get", "pods"],
        ["get", "pods", "-n"],
        ["get", "pods", "-Z"],
    ],
)
def test_tricks_and_mistakes_are_refused(words: list[str]) -> None:
    with pytest.raises(BadAction) as caught:
        kubectl_policy.check(words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "create rolebinding a --clusterrole=view --user=jane",
        "debug -i web-1 --image=busybox --profile=general -- sh",
        "logs web-1 --follow=false",
        "help rollout",
        "options",
        "cluster-info dump --output-directory=-",
        "delete --help",
    ],
)
def test_what_is_about_the_cluster_passes(text: str) -> None:
    assert kubectl_policy.check(text.split()) == text.split()


def test_a_terminal_is_left_out_and_input_is_not() -> None:
    assert kubectl_policy.check("exec -it web-1 -- sh -t".split()) == "exec --stdin web-1 -- sh -t".split()


# kubectl itself

FLAG = re.compile(r"^ {4}(?:-(\w), )?--([\w-]+)=(.*):$", re.MULTILINE)
COMMANDS = sorted(
    {(verb,) for verb in kubectl_policy.VERBS - {"help", "options"}}
    | {(verb, part) for verb, parts in SUBCOMMANDS.items() for part in parts.values()}
)


def said_by_kubectl(words: Sequence[str]) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "KUBECONFIG": "/dev/null"}
    done = subprocess.run(["kubectl", *words], env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.kubectl
def test_the_flags_are_those_of_the_kubectl_that_is_installed() -> None:
    globally = said_by_kubectl(["options"])
    wrong: list[str] = []
    for command in COMMANDS:
        shown = said_by_kubectl([*command, "--help"]).partition("\nOptions:\n")[2]
        for letter, name, default in [*FLAG.findall(shown), *FLAG.findall(globally)]:
            expects = Argument(name) if default in ("true", "false") or name in OPTIONAL else Argument(name, "next")
            for flag in (f"--{name}", f"-{letter}" if letter else f"--{name}"):
                line = parse_command([*command, flag, "next"])
                if expects not in line.arguments:
                    wrong.append(f"{' '.join(command)} {flag}")
    assert not wrong


def command_of(line: KubectlCommand) -> str:
    return f"kubectl {line.verb} {line.subcommand}".rstrip()


@pytest.mark.kubectl
@pytest.mark.parametrize(
    "text",
    [
        "get pods",
        "-n a get pods",
        "--namespace a get pods",
        "-na get pods",
        "--output json get pods",
        "-o json get pods",
        "-n -- get pods",
        "-n get rollout restart deploy/a",
        "rollout -n undo status deploy/a",
        "rollout --recursive status undo deploy/a",
        "auth --remove-extra-permissions whoami reconcile -f -",
        "auth whoami reconcile",
        "apply --recursive view-last-applied -f -",
        "apply --output view-last-applied view-last-applied deploy/a",
        "create --save-config deploy a",
        "create -n cm sa x",
        "top --containers node pod",
        "set -n image env deploy/a A=b",
        "--match-server-version --warnings-as-errors get pods",
    ],
)
def test_the_command_is_the_one_that_kubectl_finds(text: str) -> None:
    words = text.split()
    usage = re.search(r"^Usage:\n +(.*)$", said_by_kubectl([*words, "--help"]), re.MULTILINE)
    assert usage is not None
    assert f"{usage[1]} ".startswith(f"{command_of(parse_command(words))} ")
