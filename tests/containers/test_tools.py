"""The small tools: what they print and how they complain, in GNU's words and in busybox's."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from srearena.cluster.embedded.machine.files.filesystem import Mount, Volume
from srearena.cluster.embedded.machine.files.streams import Capture
from srearena.cluster.embedded.machine.images.families import FAMILIES
from srearena.cluster.embedded.userland.tools.registry import tool_names
from tests.containers.machine import Machine

SAME_EVERYWHERE = [
    ("printf 'b 2\\na 10\\nc 1\\n' | sort -k2n", "c 1\nb 2\na 10\n"),
    ("printf '1K\\n2M\\n3\\n' | sort -h", "3\n1K\n2M\n"),
    ("printf 'x:3\\ny:1\\n' | sort -t: -k2,2n -r", "y:1\nx:3\n"),
    ("printf 'x:3\\ny:1\\n' | sort -t: -k2nr", "x:3\ny:1\n"),
    ("printf 'v1.10\\nv1.9\\n' | sort -V", "v1.9\nv1.10\n"),
    ("printf 'a\\nb\\na\\n' | sort -u", "a\nb\n"),
    ("printf 'a,b,c\\nd,e,f\\n' | cut -d, -f1,3", "a,c\nd,f\n"),
    ("echo abcdef | cut -c2-4,6", "bcdf\n"),
    ("printf 'a\\nb\\nc\\n' | paste -sd,", "a,b,c\n"),
    ("printf 'one\\ntwo\\n' | tac", "two\none\n"),
    ("echo hello | rev", "olleh\n"),
    ("seq 5 | sed -n '2,3p;$='", "2\n3\n5\n"),
    ("printf 'k=v\\n' | sed 's/\\(.*\\)=\\(.*\\)/\\2=\\1/'", "v=k\n"),
    ("printf 'a b\\n' | awk '{print $2, $1; print NR}'", "b a\n1\n"),
    ("seq 10 | awk '{s+=$1} END {print s, s/NR}'", "55 5.5\n"),
    ("printf 'x\\ny\\n' | xargs -I{} echo [{}]", "[x]\n[y]\n"),
    ("seq 6 | xargs -n 2 echo", "1 2\n3 4\n5 6\n"),
    ("echo aGk= | base64 -d; echo hi | base64", "hiaGkK\n"),
    ("printf abc | md5sum", "900150983cd24fb0d6963f7d28e17f72  -\n"),
    ("expr 7 / 2; expr abc : '.*'; expr 3 '<' 4", "3\n3\n1\n"),
    ("basename /a/b.txt .txt; dirname /a/b", "b\n/a\n"),
    ("date -u -d @1700000000 '+%F %T %s'", "2023-11-14 22:13:20 1700000000\n"),
    ("echo abc | tr a-c A-C | tr -d B", "AC\n"),
    ("printf 'a  b\\n' | tr -s ' '", "a b\n"),
    ("printf 'one two\\nthree\\n' | wc -w", "3\n"),
    ("printf 'foo1\\nbar\\nfoo2\\n' | grep -c foo", "2\n"),
    ("printf 'a\\nb\\nc\\nd\\n' | grep -A1 -n b", "2:b\n3-c\n"),
    ("printf 'foo=1 bar=2\\n' | grep -oE '[a-z]+=[0-9]'", "foo=1\nbar=2\n"),
    ("printf 'Error\\nerror\\n' | grep -ic ERROR; printf 'x\\n' | grep -qv x; echo $?", "2\n1\n"),
    (
        "mkdir -p /tmp/d/e && touch /tmp/d/e/f && find /tmp/d -type f; find /tmp/d -name 'e*' -type d",
        "/tmp/d/e/f\n/tmp/d/e\n",
    ),
    ("cd /tmp; echo hi > a; cp a b; mv b c; ln -s c l; cat l; readlink l; ls -1", "hi\nc\na\nc\nl\n"),
    (
        "cd /tmp; umask 022; touch f; chmod 640 f; stat -c '%a %n %s' f; chmod u+x,g-r,o=w f; stat -c %a f",
        "640 f 0\n702\n",
    ),
    ("cd /tmp; printf 'a\\nb\\n' > x; printf 'a\\nc\\n' > y; cmp -s x y; echo $?; diff x x; echo $?", "1\n0\n"),
    ("cd /tmp; echo data > f; gzip f; ls; gunzip f.gz; cat f; printf zz | gzip -c | zcat", "f.gz\ndata\nzz"),
    ("which sh ls | wc -l; command -v cat >/dev/null && echo yes", "2\nyes\n"),
    ("timeout 2 sleep 1 && echo in time", "in time\n"),
    ("env -i X=1 env", "X=1\n"),
    ("nproc; uname -s; hostname; whoami", "4\nLinux\nweb-0\nroot\n"),
    (
        "cd /tmp; dd if=/dev/zero of=z bs=1k count=4 2>/dev/null; stat -c %s z; truncate -s 10 z; stat -c %s z",
        "4096\n10\n",
    ),
    ("seq 3 | tee /tmp/t | tail -1; wc -l < /tmp/t", "3\n3\n"),
    ("yes | head -n 2; seq 3 1 5 | head -c 3", "y\ny\n3\n4"),
    ("sleep 0.5; echo $?", "0\n"),
    ("printf '%s\\n' a b | nl; printf 'abcdef\\n' | fold -w 4", "     1\ta\n     2\tb\nabcd\nef\n"),
    ("mktemp -d /tmp/x.XXXXXX | cut -c1-7; touch -d @0 /tmp/o; stat -c %Y /tmp/o", "/tmp/x.\n0\n"),
    (
        "printf 'a\\nb\\n' | od -c | head -1; printf hi | xxd -p 2>/dev/null || echo 6869",
        "0000000   a  \\n   b  \\n\n6869\n",
    ),
]


@pytest.mark.parametrize(("script", "out"), SAME_EVERYWHERE)
@pytest.mark.parametrize("image", ["busybox", "debian"])
def test_tools_agree_on_what_they_print(machine: Machine, image: str, script: str, out: str) -> None:
    outcome = machine.sh(script, machine.idle(image))
    assert (outcome.out, outcome.err) == (out, "")


COMPLAINTS = [
    ("cat /nope", "cat: can't open '/nope': No such file or directory", "cat: /nope: No such file or directory"),
    ("ls /nope", "ls: /nope: No such file or directory", "ls: cannot access '/nope': No such file or directory"),
    (
        "rm /nope",
        "rm: can't remove '/nope': No such file or directory",
        "rm: cannot remove '/nope': No such file or directory",
    ),
    ("rm /etc", "rm: can't remove '/etc': Is a directory", "rm: cannot remove '/etc': Is a directory"),
    (
        "mkdir /etc",
        "mkdir: can't create directory '/etc': File exists",
        "mkdir: cannot create directory '/etc': File exists",
    ),
    (
        "cp /nope /tmp",
        "cp: can't stat '/nope': No such file or directory",
        "cp: cannot stat '/nope': No such file or directory",
    ),
    ("cp /etc /tmp/x", "cp: omitting directory '/etc'", "cp: -r not specified; omitting directory '/etc'"),
    (
        "head /nope",
        "head: /nope: No such file or directory",
        "head: cannot open '/nope' for reading: No such file or directory",
    ),
    (
        "tail /nope",
        "tail: can't open '/nope': No such file or directory",
        "tail: cannot open '/nope' for reading: No such file or directory",
    ),
    ("grep x /nope", "grep: /nope: No such file or directory", "grep: /nope: No such file or directory"),
    (
        "cd /tmp; rmdir /etc",
        "rmdir: '/etc': Directory not empty",
        "rmdir: failed to remove '/etc': Directory not empty",
    ),
    ("sleep x", "sleep: invalid number 'x'", "sleep: invalid time interval 'x'"),
    ("grep '[' /etc/passwd", "grep: Unmatched [, [^, [:, [., or [=", "grep: Unmatched [, [^, [:, [., or [="),
    (
        "sed 's/a' /etc/passwd",
        "sed: -e expression #1, char 3: unterminated `s' command",
        "sed: -e expression #1, char 3: unterminated `s' command",
    ),
]


@pytest.mark.parametrize(("script", "busybox", "gnu"), COMPLAINTS)
def test_tools_complain_in_the_words_of_their_family(machine: Machine, script: str, busybox: str, gnu: str) -> None:
    for image, text in (("busybox", busybox), ("debian", gnu)):
        outcome = machine.sh(script, machine.idle(image))
        assert outcome.err.splitlines()[0] == text
        assert outcome.status


def test_every_tool_an_image_family_claims_exists() -> None:
    for family in FAMILIES.values():
        assert set(family.tools) <= tool_names(), family.name


def test_images_have_the_tools_they_have_in_life(machine: Machine) -> None:
    present = {
        "debian": (["bash", "awk", "getent", "find"], ["curl", "ps", "wget", "nslookup", "ip"]),
        "alpine": (["wget", "nslookup", "nc", "ps", "less"], ["curl", "bash", "dig"]),
        "nginx": (["curl"], ["wget", "ps"]),
        "nicolaka/netshoot": (["curl", "dig", "bash", "ss"], []),
        "curlimages/curl": (["curl", "sh"], ["bash"]),
    }
    for image, (there, missing) in present.items():
        container = machine.idle(image)
        for name in there:
            assert machine.sh(f"command -v {name}", container).status == 0, (image, name)
        for name in missing:
            assert machine.sh(f"command -v {name}", container).status != 0, (image, name)


# --- listings --------------------------------------------------------------------------------------------------


def test_long_listings_have_the_columns_of_their_family(machine: Machine) -> None:
    script = "cd /tmp; echo hello > f; mkdir d; ln -s f l; chmod 600 f; ls -l"
    busybox = machine.sh(script, machine.idle("busybox")).out.splitlines()
    gnu = machine.sh(script, machine.idle("debian")).out.splitlines()
    assert busybox[0] == gnu[0] == "total 8"
    assert busybox[2].startswith("-rw-------    1 root     root             6 Nov 13 02:13 f")
    assert gnu[2] == "-rw------- 1 root root    6 Nov 13 02:13 f"
    assert gnu[3].endswith("l -> f") and gnu[3].startswith("lrwxrwxrwx")


def test_hidden_files_and_human_sizes(machine: Machine) -> None:
    container = machine.idle("debian")
    machine.sh("cd /tmp; touch .hidden; truncate -s 1536 a; truncate -s 5M b", container)
    assert machine.sh("cd /tmp; ls", container).out == "a\nb\n"
    assert machine.sh("cd /tmp; ls -A", container).out == ".hidden\na\nb\n"
    assert machine.sh("cd /tmp; ls -a | head -2", container).out == ".\n..\n"
    sizes = machine.sh("cd /tmp; ls -lhS", container).out
    assert "5.0M" in sizes and "1.5K" in sizes


# --- processes -------------------------------------------------------------------------------------------------


def test_ps_in_both_formats(machine: Machine) -> None:
    busybox = machine.sh("sleep 5 & ps", machine.container("busybox", "sleep", "100")).out.splitlines()
    assert busybox[0] == "PID   USER     TIME  COMMAND"
    assert busybox[1] == "    1 root      0:00 sleep 100"
    ubuntu = machine.idle("ubuntu")
    full = machine.sh("ps -ef", ubuntu).out.splitlines()
    assert full[0] == "UID          PID    PPID  C STIME TTY          TIME CMD"
    assert full[1].endswith("00:00:00 sleep 1000000")
    assert machine.sh("ps aux", ubuntu).out.startswith("USER         PID %CPU %MEM    VSZ   RSS TTY")
    assert "load average" in machine.sh("top -b -n1", ubuntu).out


def test_killing_by_name_and_number(machine: Machine) -> None:
    container = machine.idle()
    victims = [container.exec(["sleep", "777"]) for _ in range(3)]
    machine.clock.advance(0.1)
    # The shell that runs pgrep has the words in its own command line, too.
    assert machine.sh("pgrep -f 'sleep 777' | wc -l; pidof sleep | wc -w", container).out == "4\n4\n"
    machine.sh(f"kill {victims[0].pid}; pkill -9 -f 'sleep 77[7]'", container)
    assert [victim.done.value for victim in victims] == [143, 137, 137]
    missing = machine.sh("kill 9999", container)
    assert (missing.err, missing.status) == ("sh: kill: can't kill pid 9999: No such process\n", 1)


# --- archives (kubectl cp) -------------------------------------------------------------------------------------


def test_files_leave_a_container_in_a_real_tar_stream(machine: Machine) -> None:
    container = machine.idle()
    machine.sh(
        "mkdir -p /data/sub; echo one > /data/a; printf two > /data/sub/b; ln -s a /data/l; chmod 600 /data/a",
        container,
    )
    out, err = Capture(), Capture()
    process = container.exec(["tar", "cf", "-", "/data"], stdout=out, stderr=err)
    machine.wait(process)
    assert err.data == b"tar: removing leading '/' from member names\n"
    with tarfile.open(fileobj=io.BytesIO(out.data)) as archive:
        names = {member.name: member for member in archive.getmembers()}
        assert set(names) == {"data", "data/a", "data/sub", "data/sub/b", "data/l"}
        assert names["data/a"].mode == 0o600
        assert names["data/l"].linkname == "a"
        content = archive.extractfile("data/sub/b")
        assert content is not None and content.read() == b"two"


@pytest.mark.skipif(shutil.which("tar") is None, reason="needs tar")
def test_files_enter_a_container_from_a_real_tar(machine: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "src"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file.txt").write_text("hello\n")
    stream = subprocess.run(["tar", "cf", "-", "-C", str(folder.parent), "src"], capture_output=True, check=True).stdout
    container = machine.idle()
    outcome = machine.run(container, ["tar", "-xmf", "-", "-C", "/tmp"], stdin=stream)
    assert (outcome.status, outcome.err) == (0, "")
    assert machine.sh("cat /tmp/src/deep/file.txt", container).out == "hello\n"


def test_a_truncated_archive_is_reported(machine: Machine) -> None:
    assert machine.run(machine.idle(), ["tar", "xf", "-"], stdin=b"garbage" * 300).status == 2


def test_a_tool_can_be_copied_and_run_elsewhere(machine: Machine) -> None:
    shared = Volume()
    machine.sh("cp /usr/bin/curl /shared/curl", machine.idle("nginx", mounts=[Mount("/shared", shared)]))
    outcome = machine.sh("/shared/curl --version", machine.idle("debian", mounts=[Mount("/shared", shared)]))
    assert outcome.out.startswith("curl 8.")


def test_sed_in_place_keeps_every_line(machine: Machine) -> None:
    container = machine.idle("debian")
    machine.sh("seq 1 300 > /tmp/numbers", container)
    edited = machine.sh("sed -i 's/^7$/seven/' /tmp/numbers", container)
    assert (edited.out, edited.err, edited.status) == ("", "", 0)
    lines = machine.sh("cat /tmp/numbers", container).out.splitlines()
    assert lines == [*map(str, range(1, 7)), "seven", *map(str, range(8, 301))]
