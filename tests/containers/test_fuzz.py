"""Whatever one types, no tool and no script stumbles: they print, complain or run on, but never crash."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.userland.tools.registry import tool_names
from tests.containers.machine import Machine
from tests.containers.test_shell_syntax import PIECES

NOISE = HealthCheck.function_scoped_fixture
SKIPPED = {"sh", "ash", "dash", "bash", "busybox"}
WORDS = st.one_of(
    st.sampled_from(
        [
            *(
                "-",
                "--",
                "-a",
                "-n",
                "-c",
                "-l",
                "-r",
                "-f",
                "-v",
                "-h",
                "-i",
                "-s",
                "-d",
                "-k",
                "-t",
                "-w",
                "-o",
                "-p",
                "-e",
                "-x",
            ),
            *(
                "-A",
                "-B",
                "-C",
                "-E",
                "-F",
                "-H",
                "-I",
                "-L",
                "-N",
                "-P",
                "-R",
                "-S",
                "-T",
                "-X",
                "-1",
                "-z",
                "-u",
                "-m",
            ),
            *(
                "0",
                "1",
                "-1",
                "5",
                "99999999999999999999",
                "1.5",
                "1e400",
                "nan",
                "inf",
                "x",
                "",
                " ",
                "/etc/passwd",
                "/",
                "/tmp",
            ),
            *(
                "/nope",
                ".",
                "..",
                "a=b",
                "s/a/b/",
                "{print $1}",
                "$",
                "%d",
                "+%s",
                "@0",
                "@99999999999999",
                "*",
                "[",
                "]",
                "(",
                ")",
            ),
            *(
                "1,2",
                "2-",
                "-2",
                "a-c",
                "if=/dev/zero",
                "bs=0",
                "count=x",
                "localhost",
                "localhost:80",
                "http://localhost/",
                "80",
            ),
            *(
                "-n1",
                "-k2",
                "-d,",
                "--help",
                "--version",
                "--color=auto",
                "root",
                "0:0",
                "u+x",
                "777",
                "888",
                "-name",
                "-exec",
                ";",
            ),
        ]
    ),
    st.text(max_size=6),
)


@settings(max_examples=600, deadline=None, suppress_health_check=[NOISE])
@given(st.sampled_from(sorted(tool_names() - SKIPPED)), st.lists(WORDS, max_size=4), st.binary(max_size=60))
def test_no_tool_crashes_on_odd_arguments(name: str, args: list[str], stdin: bytes) -> None:
    machine = Machine()
    container = machine.idle("nicolaka/netshoot")
    words = [word.replace("\0", "") for word in args]
    if container.files.search(name, "/bin:/usr/bin") is None:
        return
    outcome = machine.run(container, [name, *words], stdin=stdin, patience=3.0)
    assert outcome.status != 139, (outcome, words)


@settings(max_examples=400, deadline=None, suppress_health_check=[NOISE])
@given(st.lists(PIECES, max_size=25), st.sampled_from(["sh", "bash", "dash"]))
def test_no_script_crashes_the_shell(pieces: list[str], shell: str) -> None:
    machine = Machine()
    container = machine.idle("debian")
    outcome = machine.run(container, [shell, "-c", "".join(pieces).replace("\0", "")], patience=2.0)
    assert outcome.status != 139, outcome
