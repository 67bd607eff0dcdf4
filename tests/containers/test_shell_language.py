"""The shell language, against what the real shells print and return."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.containers.machine import Machine

SNIPPETS = Path(__file__).parent / "snippets"


def recorded(name: str) -> list[Any]:
    rows = yaml.safe_load((SNIPPETS / f"{name}.yaml").read_text())
    return [pytest.param(row["run"].rstrip("\n"), row["out"], row["status"], id=f"{i}") for i, row in enumerate(rows)]


@pytest.mark.parametrize(("script", "out", "status"), recorded("dash"))
def test_scripts_do_what_dash_does(machine: Machine, script: str, out: str, status: int) -> None:
    container = machine.idle("debian")
    outcome = machine.run(container, ["dash", "-c", script])
    assert (outcome.out, outcome.status) == (out, status), outcome.err


@pytest.mark.parametrize(("script", "out", "status"), recorded("bash"))
def test_scripts_do_what_bash_does(machine: Machine, script: str, out: str, status: int) -> None:
    container = machine.idle("debian")
    outcome = machine.run(container, ["bash", "-c", script])
    assert (outcome.out, outcome.status) == (out, status), outcome.err


BUSYBOX = [
    ("nope", "", "sh: nope: not found\n", 127),
    ("./nope", "", "sh: ./nope: not found\n", 127),
    ("echo -e 'a\\tb'", "a\tb\n", "", 0),
    ("echo 'a\\tb'", "a\\tb\n", "", 0),
    ("[[ abc == a* ]] && echo yes", "yes\n", "", 0),
    ("x=hello; echo ${x:1:3} ${x/l/L}", "ell heLlo\n", "", 0),
    ("echo hi &> /tmp/f; cat /tmp/f", "hi\n", "", 0),
    ("echo x > /no/where", "", "sh: can't create /no/where: nonexistent directory\n", 1),
    ("cat < /missing", "", "sh: can't open /missing: no such file\n", 1),
    ("cd /missing", "", "sh: cd: can't cd to /missing: No such file or directory\n", 1),
    ("if", "", "sh: syntax error: unexpected end of file\n", 2),
    ("echo {1..3}", "{1..3}\n", "", 0),
    ("echo $((2**3)) $((1,2))", "8 2\n", "", 0),
    ("set -o pipefail; false | true", "", "", 1),
    ("source /dev/null && echo ok", "ok\n", "", 0),
]


@pytest.mark.parametrize(("script", "out", "err", "status"), BUSYBOX)
def test_the_shell_of_busybox_has_its_own_words(machine: Machine, script: str, out: str, err: str, status: int) -> None:
    outcome = machine.sh(script)
    assert (outcome.out, outcome.err, outcome.status) == (out, err, status)


DASH_MESSAGES = [
    ("nope", "sh: 1: nope: not found\n", 127),
    ("\n\n./nope", "sh: 3: ./nope: not found\n", 127),
    ("/etc", "sh: 1: /etc: Permission denied\n", 126),
    ("echo > /no/where", "sh: 1: cannot create /no/where: Directory nonexistent\n", 2),
    ("cd /missing", "sh: 1: cd: can't cd to /missing\n", 2),
    ("echo )", 'sh: 1: Syntax error: ")" unexpected\n', 2),
    ("if true; then echo", 'sh: 1: Syntax error: end of file unexpected (expecting "fi")\n', 2),
    ("echo 'a", "sh: 1: Syntax error: Unterminated quoted string\n", 2),
    ("echo ${x:?gone}", "sh: 1: x: gone\n", 2),
    ("set -u; echo $nope", "sh: 1: nope: parameter not set\n", 2),
    ("echo $((1/0))", 'sh: 1: arithmetic expression: division by zero: "1/0"\n', 2),
]


@pytest.mark.parametrize(("script", "err", "status"), DASH_MESSAGES)
def test_errors_read_as_in_dash(machine: Machine, script: str, err: str, status: int) -> None:
    outcome = machine.sh(script, machine.idle("debian"))
    assert (outcome.err, outcome.status) == (err, status)


def test_what_precedes_a_syntax_error_on_another_line_has_run(machine: Machine) -> None:
    outcome = machine.sh("echo first\necho second; )")
    assert outcome.out == "first\n"
    assert outcome.status == 2


def test_a_script_from_standard_input_leaves_the_rest_to_its_commands(machine: Machine) -> None:
    outcome = machine.run(machine.idle(), ["sh"], stdin=b"read x\nthe line\necho got $x\ncat\nrest of it\n")
    assert outcome.out == "got the line\nrest of it\n"


def test_a_here_document_may_come_over_standard_input(machine: Machine) -> None:
    outcome = machine.run(machine.idle(), ["sh"], stdin=b"cat <<E\none\ntwo\nE\necho done\n")
    assert outcome.out == "one\ntwo\ndone\n"


def test_arguments_after_a_command_string_are_its_parameters(machine: Machine) -> None:
    outcome = machine.run(machine.idle(), ["sh", "-c", 'echo "$0 $1 $#"', "zero", "one", "two"])
    assert outcome.out == "zero one 2\n"


def test_a_script_file_names_itself_and_its_lines(machine: Machine) -> None:
    container = machine.idle()
    container.files.write_bytes("/run.sh", b"#!/bin/sh\necho $0\nnope\n", 0o755)
    outcome = machine.run(container, ["/run.sh"])
    assert (outcome.out, outcome.err) == ("/run.sh\n", "/run.sh: line 3: nope: not found\n")


# --- generated programs, compared with the real shell ----------------------------------------------------------


def _generated(seed: int) -> list[str]:
    """Pure-text snippets: expansions, arithmetic and field splitting with random pieces."""
    draw = random.Random(seed)
    values = ["", "a", "a b", " a  b ", "*", "/x/y.z", "a:b::c", "q'q", "0", "7", "x=y", "a\\b", "-n"]
    operators = [":-d", "-d", ":+e", "+e", "%b*", "%%:*", "#a", "##*/", "#*:", "%.*", ":-$v", '#"*"']
    snippets = []
    for _ in range(150):
        value = draw.choice(values).replace("'", "'\\''")
        name, operator = draw.choice(("v", "w")), draw.choice(operators)
        shape = draw.randrange(6)
        if shape == 0:
            body = f"printf '<%s>' ${{{name}{operator}}}"
        elif shape == 1:
            body = f"printf '<%s>' \"${{{name}{operator}}}\" x"
        elif shape == 2:
            body = f"IFS='{draw.choice((':', ' ', ': ', ',x'))}'; set -f; set -- ${name}; printf '<%s>' $# \"$@\""
        elif shape == 3:
            numbers = [str(draw.randrange(-9, 30)) for _ in range(4)]
            marks = [draw.choice(("+", "-", "*", "&", "|", "^", "<", ">=", "==", "&&", "||", "<<")) for _ in range(3)]
            text = numbers[0] + "".join(
                f" {m} {n if int(n) >= 0 or m != '<<' else '1'}" for m, n in zip(marks, numbers[1:], strict=True)
            )
            body = f"printf '<%s>' $(( {text.replace('<< -', '<< ')} ))"
        elif shape == 4:
            pattern = draw.choice(("*", "a*", "?", "[a-c]*", "*b*", "'*'", "??*", "[!a]*"))
            body = f"case ${name} in {pattern}) echo yes;; *) echo no;; esac"
        else:
            body = f'set -f; for i in ${name} "${name}" "$@"; do printf \'[%s]\' "$i"; done'
        snippets.append(f"set -f; v='{value}'\n{body}\n")
    return snippets


@pytest.mark.skipif(shutil.which("dash") is None, reason="needs dash to compare with")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_generated_scripts_agree_with_the_real_dash(machine: Machine, seed: int) -> None:
    container = machine.idle("debian")
    for script in _generated(seed):
        real = subprocess.run(
            ["dash", "-c", script], capture_output=True, timeout=10, env={"PATH": "/usr/bin:/bin"}, cwd="/"
        )
        ours = machine.run(container, ["dash", "-c", script])
        assert (ours.out, ours.status) == (real.stdout.decode(), real.returncode), script


def test_a_text_that_is_run_again_does_the_same_again(machine: Machine) -> None:
    container = machine.idle("debian")
    script = "x=$1; cat <<A\n$x\nA\nf() { echo f$x; }; f; [ $1 = 2 ] && exit 4; echo on\n) never\n"
    shown = [machine.run(container, ["dash", "-c", script, "sh", number]) for number in "121"]
    assert [(one.out, one.status) for one in shown] == [("1\nf1\non\n", 2), ("2\nf2\n", 4), ("1\nf1\non\n", 2)]
    assert shown[0].err == shown[2].err and "unexpected" in shown[0].err
