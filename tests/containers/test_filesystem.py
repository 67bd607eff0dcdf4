"""Files: mounts over a shared image, permissions, space, and the errors of the kernel."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.containers.errors import StartError
from srearena.cluster.embedded.machine.files.file_view import FileView
from srearena.cluster.embedded.machine.files.filesystem import Filesystem, Mount, RootCaller, Volume
from srearena.cluster.embedded.machine.files.inodes import PAGE, Directory, File, Space
from srearena.cluster.embedded.machine.processes.credentials import Credentials
from srearena.cluster.embedded.programs.registry import program_for
from tests.containers.machine import Machine

CLOCK = Clock(1_763_000_000.0)


def tree(space: Space | None = None, **settings_: Any) -> FileView:
    base = Directory(entries={"etc": Directory(entries={"motd": File(b"hello\n")}), "tmp": Directory(0o1777)})
    base.freeze()
    return FileView(Filesystem(CLOCK, base, space=space, **settings_), RootCaller())


def as_user(view: FileView, uid: int, *groups: int) -> FileView:
    return FileView(view.filesystem, RootCaller(credentials=Credentials(uid, uid, groups)))


def fails_with(number: int) -> Any:
    return pytest.raises(OSError, match=rf"\[Errno {number}\]")


# --- the image and what is written over it ---------------------------------------------------------------------


def test_what_one_container_writes_another_of_the_same_image_does_not_see(machine: Machine) -> None:
    one, two = machine.idle(), machine.idle()
    machine.sh("echo changed > /etc/passwd; rm /etc/group; mkdir /new", one)
    assert one.files.read_text("/etc/passwd") == "changed\n"
    assert not one.files.exists("/etc/group")
    assert two.files.read_text("/etc/passwd").startswith("root:x:0:0")
    assert two.files.exists("/etc/group")
    assert not two.files.exists("/new")


def test_containers_of_an_image_share_its_files_until_they_write(machine: Machine) -> None:
    one, two = machine.idle("nginx"), machine.idle("nginx")
    assert one.files.stat("/usr/sbin/nginx").node is two.files.stat("/usr/sbin/nginx").node
    one.files.chmod("/usr/sbin/nginx", 0o700)
    assert two.files.stat("/usr/sbin/nginx").node.mode == 0o755


def test_an_image_never_changes(machine: Machine) -> None:
    container = machine.idle("alpine")
    machine.sh("find / -xdev -type f | head -50 | while read f; do echo x >> $f; done; rm -rf /etc /home", container)
    image = FileView(Filesystem(CLOCK, program_for("alpine").tree), RootCaller())
    assert image.read_text("/etc/os-release").startswith("PRETTY_NAME")


# --- mounts ----------------------------------------------------------------------------------------------------


def test_a_volume_is_shared_by_all_who_mount_it(machine: Machine) -> None:
    volume = Volume()
    writer = machine.idle(mounts=[Mount("/data", volume)])
    reader = machine.idle(mounts=[Mount("/mnt/shared", volume, read_only=True)])
    machine.sh("echo from writer > /data/note", writer)
    assert machine.sh("cat /mnt/shared/note", reader).out == "from writer\n"
    refused = machine.sh("echo no > /mnt/shared/note", reader)
    assert refused.err == "sh: can't create /mnt/shared/note: Read-only file system\n"


def test_a_read_only_root_leaves_volumes_writable(machine: Machine) -> None:
    container = machine.idle(read_only_root=True, mounts=[Mount("/scratch", Volume())])
    assert machine.sh("touch /etc/x", container).err == "touch: /etc/x: Read-only file system\n"
    assert machine.sh("echo ok > /scratch/x && cat /scratch/x", container).out == "ok\n"


def test_a_sub_path_shows_one_part_of_a_volume_as_it_was_at_the_start(machine: Machine) -> None:
    volume = Volume(Directory(entries={"app.conf": File(b"one\n"), "logs": Directory()}))
    container = machine.idle(
        mounts=[Mount("/etc/app.conf", volume, sub_path="app.conf"), Mount("/var/log/app", volume, sub_path="logs")]
    )
    volume.root.put("app.conf", File(b"two\n"))
    assert machine.sh("cat /etc/app.conf; ls /var/log/app", container).out == "one\n"


def test_a_missing_sub_path_becomes_a_directory(machine: Machine) -> None:
    volume = Volume()
    container = machine.idle(mounts=[Mount("/opt/x", volume, sub_path="not/there")])
    assert container.files.is_dir("/opt/x")
    assert isinstance(volume.root.get("not"), Directory)


def test_a_directory_cannot_be_mounted_over_a_file(machine: Machine) -> None:
    with pytest.raises(StartError) as failure:
        machine.idle("nginx", mounts=[Mount("/etc/nginx/nginx.conf", Volume(), source="/var/lib/kubelet/x")])
    assert 'error mounting "/var/lib/kubelet/x" to rootfs at "/etc/nginx/nginx.conf"' in failure.value.message
    assert "not a directory: Are you trying to mount a directory onto a file (or vice-versa)?" in failure.value.message


def test_mount_points_appear_in_listings_and_links_on_the_way_are_followed(machine: Machine) -> None:
    token = Volume(Directory(entries={"token": File(b"secret")}))
    container = machine.idle("alpine", mounts=[Mount("/var/run/secrets/kubernetes.io/serviceaccount", token)])
    assert machine.sh("cat /run/secrets/kubernetes.io/serviceaccount/token", container).out == "secret"
    assert machine.sh("ls /run/secrets", container).out == "kubernetes.io\n"
    assert "/run/secrets/kubernetes.io/serviceaccount" in machine.sh("mount", container).out


def test_a_mount_inside_a_mount(machine: Machine) -> None:
    outer, inner = Volume(), Volume(Directory(entries={"deep": File(b"x")}))
    container = machine.idle(mounts=[Mount("/a/b", inner), Mount("/a", outer)])
    assert machine.sh("ls /a /a/b", container).out == "/a:\nb\n\n/a/b:\ndeep\n"


def test_a_broken_volume_gives_input_output_errors(machine: Machine) -> None:
    volume = Volume(Directory(entries={"f": File(b"x")}))
    container = machine.idle(mounts=[Mount("/data", volume)])
    volume.broken = errno.EIO
    assert machine.sh("cat /data/f", container).err == "cat: can't open '/data/f': Input/output error\n"
    assert machine.sh("ls /data", container).err == "ls: /data: Input/output error\n"
    volume.broken = None
    assert machine.sh("cat /data/f", container).out == "x"


# --- space -----------------------------------------------------------------------------------------------------


def test_a_full_volume_refuses_more_and_takes_more_after_a_removal(machine: Machine) -> None:
    volume = Volume(space=Space(10_000))
    container = machine.idle(mounts=[Mount("/data", volume)])
    assert machine.sh("head -c 9000 /dev/zero > /data/a", container).status == 0
    full = machine.sh("head -c 5000 /dev/zero > /data/b", container)
    assert "No space left on device" in full.err
    assert (
        machine.sh("rm /data/a /data/b; head -c 5000 /dev/zero > /data/b; ls -s /data | tail -1", container).status == 0
    )
    assert volume.space.used == 5000


def test_a_deleted_file_keeps_its_space_while_somebody_has_it_open(machine: Machine) -> None:
    volume = Volume(space=Space(1_000_000))
    container = machine.idle(mounts=[Mount("/data", volume)])
    process = container.exec(["sh", "-c", "exec 3>/data/log; head -c 700000 /dev/zero >&3; sleep 60"])
    machine.clock.advance(5)
    machine.sh("rm /data/log", container)
    assert machine.sh("ls -A /data; df /data | tail -1 | awk '{print $3}'", container).out == "684\n"
    machine.wait(process)
    assert volume.space.used == 0


def test_what_a_container_writes_is_counted_on_the_disk_of_its_node() -> None:
    disk = Space(1_000_000, used=400_000)
    view = tree(Space(parent=disk))
    view.write_bytes("/tmp/x", b"a" * 100_000)
    assert disk.used == 500_000
    with fails_with(errno.ENOSPC):
        view.write_bytes("/tmp/y", b"a" * 600_000)
    view.unlink("/tmp/x")
    assert disk.used == 400_000


def test_copying_up_a_file_of_the_image_takes_its_space() -> None:
    view = tree(Space(3))
    with fails_with(errno.ENOSPC):
        view.open("/etc/motd", "a")
    assert view.read_text("/etc/motd") == "hello\n"


def test_filling_a_disk_with_gigabytes_takes_hardly_any_memory() -> None:
    file = File()
    block = b"y\n" * 32768
    for index in range(16 * 1024):
        file.write_at(index * PAGE, bytes(PAGE) if index > 8000 else block)
    assert file.size == 1024**3
    assert file.read_at(file.size - PAGE, 4) == bytes(4)
    zeros = File()
    zeros.truncate(10 * 1024**4)
    assert zeros.read_at(5 * 1024**4, 3) == b"\0\0\0"


# --- permissions -----------------------------------------------------------------------------------------------


def test_permissions_follow_owner_group_and_others() -> None:
    view = tree()
    view.write_bytes("/tmp/f", b"x")
    view.chown("/tmp/f", 100, 200)
    view.chmod("/tmp/f", 0o640)
    assert as_user(view, 100).may("/tmp/f", 6)
    assert as_user(view, 5, 200).may("/tmp/f", 4)
    assert not as_user(view, 5, 200).may("/tmp/f", 2)
    with fails_with(errno.EACCES):
        as_user(view, 5).read_bytes("/tmp/f")
    with fails_with(errno.EPERM):
        as_user(view, 5).chmod("/tmp/f", 0o777)
    with fails_with(errno.EACCES):
        as_user(view, 5).write_bytes("/etc/new", b"")


def test_root_without_its_capabilities_is_bound_like_everybody() -> None:
    view = tree()
    view.write_bytes("/tmp/f", b"x")
    view.chown("/tmp/f", 100, 100)
    view.chmod("/tmp/f", 0o600)
    bare = FileView(view.filesystem, RootCaller(credentials=Credentials(0, 0, (), frozenset())))
    with fails_with(errno.EACCES):
        bare.read_bytes("/tmp/f")


def test_in_a_sticky_directory_only_owners_remove() -> None:
    view = tree()
    as_user(view, 100).write_bytes("/tmp/mine", b"x")
    with fails_with(errno.EPERM):
        as_user(view, 200).unlink("/tmp/mine")
    as_user(view, 100).unlink("/tmp/mine")


def test_files_in_a_set_group_directory_belong_to_its_group() -> None:
    view = tree()
    view.mkdir("/shared", 0o777)
    view.chown("/shared", 0, 2000)
    view.chmod("/shared", 0o2777)
    as_user(view, 100).write_bytes("/shared/f", b"")
    as_user(view, 100).mkdir("/shared/d")
    assert view.stat("/shared/f").node.gid == 2000
    assert view.stat("/shared/d").node.mode & 0o2000


def test_non_root_users_see_the_words_of_the_tools(machine: Machine) -> None:
    container = machine.idle("debian", uid=1000)
    assert machine.sh("touch /etc/x", container).err == "touch: cannot touch '/etc/x': Permission denied\n"
    assert machine.sh("cat /root/.bashrc", container).err == "cat: /root/.bashrc: Permission denied\n"
    assert machine.sh("echo hi > /tmp/ok; ls -l /tmp/ok | cut -c1-10; id", container).out == (
        "-rw-r--r--\nuid=1000 gid=0(root) groups=0(root)\n"
    )


# --- paths and links -------------------------------------------------------------------------------------------


def test_links_lead_where_they_point_and_loops_are_caught() -> None:
    view = tree()
    view.symlink("../etc/motd", "/tmp/link")
    view.symlink("/tmp/b", "/tmp/a")
    view.symlink("/tmp/a", "/tmp/b")
    assert view.read_text("/tmp/link") == "hello\n"
    assert view.canonical("/tmp/../tmp/./link") == "/etc/motd"
    assert view.readlink("/tmp/link") == "../etc/motd"
    with fails_with(errno.ELOOP):
        view.read_bytes("/tmp/a")
    with fails_with(errno.ENOTDIR):
        view.read_bytes("/etc/motd/x")
    with fails_with(errno.ENAMETOOLONG):
        view.exists("/tmp/x") or view.write_bytes("/tmp/" + "x" * 300, b"")


def test_renaming_replaces_files_but_not_directories_that_hold_something() -> None:
    view = tree()
    view.write_bytes("/tmp/a", b"a")
    view.write_bytes("/tmp/b", b"b")
    view.rename("/tmp/a", "/tmp/b")
    assert (view.read_bytes("/tmp/b"), view.exists("/tmp/a")) == (b"a", False)
    view.mkdir("/tmp/d")
    view.mkdir("/tmp/e")
    view.write_bytes("/tmp/e/x", b"")
    with fails_with(errno.ENOTEMPTY):
        view.rename("/tmp/d", "/tmp/e")
    with fails_with(errno.EISDIR):
        view.rename("/tmp/b", "/tmp/d")
    with fails_with(errno.EINVAL):
        view.rename("/tmp/e", "/tmp/e/inside")


def test_hard_links_are_one_file_under_two_names() -> None:
    view = tree(Space(1000))
    view.write_bytes("/tmp/a", b"12345")
    view.hard_link("/tmp/a", "/tmp/b")
    view.unlink("/tmp/a")
    assert view.read_bytes("/tmp/b") == b"12345"
    assert view.filesystem.root.volume.space.used == 5
    view.unlink("/tmp/b")
    assert view.filesystem.root.volume.space.used == 0


# --- laws ------------------------------------------------------------------------------------------------------

WRITES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 3 * PAGE), st.binary(max_size=300)),
        st.tuples(st.just("fill"), st.integers(0, 2 * PAGE), st.integers(0, 2 * PAGE)),
        st.tuples(st.just("cut"), st.integers(0, 4 * PAGE), st.just(0)),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None)
@given(WRITES)
def test_a_file_holds_what_was_written(operations: list[tuple[str, int, Any]]) -> None:
    space = Space()
    file = File(space=space)
    model = bytearray()
    for kind, place, what in operations:
        if kind == "cut":
            file.truncate(place)
            model = model[:place] + bytes(max(0, place - len(model)))
            continue
        data = what if kind == "write" else b"ab" * (what // 2)
        file.write_at(place, data)
        if data:
            model += bytes(max(0, place - len(model)))
            model[place : place + len(data)] = data
        elif place > len(model):
            model += bytes(place - len(model))
    assert file.read_at(0, file.size) == bytes(model)
    assert (file.size, space.used) == (len(model), len(model))


def test_shared_memory_has_the_size_that_runtimes_give_it(machine: Machine) -> None:
    container = machine.idle("busybox:1.36")
    done = machine.sh("dd if=/dev/zero of=/dev/shm/frames bs=1M count=65", container)
    assert done.status == 1 and "No space left on device" in done.err
    assert machine.sh("dd if=/dev/zero of=/dev/shm/frames bs=1M count=64", container).status == 0
    assert "65536" in machine.sh("df -k /dev/shm", container).out
