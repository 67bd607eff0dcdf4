"""The commands of agnhost and the images made of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from srearena.cluster.embedded.machine.processes.credentials import DEFAULT_CAPABILITIES
from srearena.cluster.embedded.programs.agnhost.conversion_webhook import _converted
from srearena.cluster.embedded.programs.agnhost.mounttest import go_mode
from srearena.cluster.embedded.programs.agnhost.webhook import _VERDICTS
from tests.containers.machine import Machine

IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.53"


def _run(machine: Machine, *arguments: str) -> tuple[str, int]:
    container = machine.container(IMAGE, args=list(arguments))
    machine.clock.advance(1)

    return container.log.text(), container.done.value.code


@pytest.mark.parametrize(
    ("mode", "directory", "text"),
    [
        (0o644, False, "-rw-r--r--"),
        (0o777, True, "drwxrwxrwx"),
        (0o1777, True, "dtrwxrwxrwx"),
        (0o2750, True, "dgrwxr-x---"),
    ],
)
def test_modes_are_printed_as_go_prints_them(mode: int, directory: bool, text: str) -> None:
    assert go_mode(mode, directory=directory) == text


def test_mounttest_writes_describes_and_reads(machine: Machine) -> None:
    flags = [
        "--new_file_0666=/tmp/f",
        "--file_perm=/tmp/f",
        "--file_mode=/tmp",
        "--fs_type=/dev/shm",
        "--file_owner=/tmp/f",
    ]
    text, code = _run(machine, "mounttest", *flags)
    assert code == 0
    assert 'content of file "/tmp/f": mount-tester new file\n' in text
    assert 'perms of file "/tmp/f": -rw-rw-rw-\n' in text
    assert 'mode of file "/tmp": dtrwxrwxrwx\n' in text
    assert 'mount type of "/dev/shm": tmpfs\n' in text
    assert 'owner UID of "/tmp/f": 0\n' in text
    missing, code = _run(machine, "mounttest", "--file_content=/nothing")
    assert (code, missing) == (
        1,
        'error reading file content for "/nothing": open /nothing: no such file or directory\n',
    )


def test_mounttest_waits_for_the_content_it_expects(machine: Machine) -> None:
    container = machine.container(IMAGE, args=["mounttest", "--file_content_in_loop=/tmp/f", "--retry_time=60"])
    machine.clock.advance(5)
    assert container.running
    assert "Error reading file /tmp/f: open /tmp/f: no such file or directory, retrying\n" in container.log.text()
    machine.sh("echo mount-tester new file > /tmp/f", container)
    machine.clock.advance(3)
    assert container.done.value.code == 0


def test_commands_that_print_and_end(machine: Machine) -> None:
    assert _run(machine, "entrypoint-tester", "a", "b") == ("[/agnhost entrypoint-tester a b]\n", 0)
    text, code = _run(machine, "nothing-like-it")
    assert code == 1 and 'unknown command "nothing-like-it" for "app"' in text
    container = machine.idle(IMAGE)
    hosts = machine.sh("cat /etc/hosts", container).out
    assert machine.run(container, ["/agnhost", "etc-hosts"]).out == hosts + "\n"


def test_porter_serves_what_its_environment_says(machine: Machine) -> None:
    env = {"SERVE_PORT_8081": "foo", "SERVE_PORT_8082": '<a href="/rewriteme">test</a>', "OTHER": "x"}
    env["SERVE_TLS_PORT_8443"] = "secret"
    machine.container(IMAGE, args=["porter"], env=env)
    shell = machine.idle("nicolaka/netshoot")
    assert machine.sh("curl -q -s localhost:8081", shell).out == "foo"
    assert "text/html" in machine.sh("curl -s -i localhost:8082", shell).out
    assert machine.sh("curl -k -s https://localhost:8443", shell).out == "secret"
    assert machine.sh("curl -s https://localhost:8443", shell).status == 60


def test_netexec_answers_over_http_and_udp_and_dials(machine: Machine) -> None:
    machine.container(IMAGE, args=["netexec", "--http-port", "8083", "--udp-port", "8084"])
    shell = machine.idle("nicolaka/netshoot")
    dial = "localhost:8083/dial?host=127.0.0.1&port={}&request=hostname&protocol={}&tries=2"
    assert json.loads(machine.sh(f"curl -s '{dial.format(8083, 'http')}'", shell).out) == {"responses": ["web-0"] * 2}
    assert json.loads(machine.sh(f"curl -s '{dial.format(8084, 'udp')}'", shell).out) == {"responses": ["web-0"] * 2}
    ran = machine.sh("curl -s 'localhost:8083/shell?cmd=echo+hi;exit+3'", shell).out
    assert json.loads(ran) == {"output": "hi\n", "error": "exit status 3"}


def test_netexec_serves_tls_with_the_certificate_of_its_image(machine: Machine) -> None:
    files = ["--tls-cert-file", "/localhost.crt", "--tls-private-key-file", "/localhost.key"]
    machine.container(IMAGE, args=["netexec", "--http-port", "9090", "--udp-port", "9091", *files])
    shell = machine.idle("nicolaka/netshoot")
    assert machine.sh("curl -k -s https://localhost:9090/hostname", shell).out == "web-0"


def test_a_negative_port_after_a_space_is_a_value(machine: Machine) -> None:
    container = machine.container(IMAGE, args=["netexec", "--udp-port", "-1", "--http-port", "8090"])
    assert container.running
    assert [listener.port for listener in machine.namespace.listeners()] == [8090]


def test_a_line_that_is_no_request_is_refused_at_once(machine: Machine) -> None:
    machine.container(IMAGE, args=["netexec", "--http-port=8083"])
    answer = machine.sh("echo hostName | nc -w 2 127.0.0.1 8083").out
    assert answer.startswith("HTTP/1.1 400 Bad Request\r\n") and answer.endswith("400 Bad Request")


def test_the_web_server_serves_files_and_nothing_else(machine: Machine) -> None:
    machine.container("registry.k8s.io/e2e-test-images/nautilus:1.7")
    shell = machine.idle("nicolaka/netshoot")
    assert json.loads(machine.sh("curl -s localhost/data.json", shell).out) == {"image": "nautilus.jpg"}
    assert machine.sh("curl -s -w ' %{http_code}' localhost/results/udp", shell).out == "404 page not found\n 404"


def test_logs_are_generated_evenly(machine: Machine) -> None:
    container = machine.container(IMAGE, args=["logs-generator", "--log-lines-total", "10", "--run-duration", "20s"])
    machine.clock.advance(9)
    assert container.running and len(container.log.lines()) == 5
    machine.clock.advance(12)
    assert container.done.value.code == 0
    assert "] 9 " in container.log.text().splitlines()[-1]


def test_a_set_user_id_program_is_root_unless_the_container_forbids(machine: Machine) -> None:
    image = "registry.k8s.io/e2e-test-images/nonewprivs:1.3"
    assert machine.container(image, uid=1000).log.text() == "Effective uid: 0\n"
    forbidden = machine.container(image, uid=1000, no_new_privileges=True)
    assert forbidden.log.text() == "Effective uid: 1000\n"


def test_unknown_options_of_curl_are_refused_in_its_own_words(machine: Machine) -> None:
    outcome = machine.sh("curl --nonsense localhost", machine.idle("nicolaka/netshoot"))
    assert outcome.status == 2
    assert outcome.err == (
        "curl: option --nonsense: is unknown\ncurl: try 'curl --help' or 'curl --manual' for more information\n"
    )


def _admission(operation: str, **obj: Any) -> dict[str, Any]:
    return {"operation": operation, "object": obj, "oldObject": obj}


def test_verdicts_of_the_webhook() -> None:
    marked = {"webhook-e2e-test": "webhook-disallow"}
    denied = _VERDICTS["/pods"](_admission("CREATE", metadata={"labels": marked}, spec={"containers": []}))
    assert denied == {"allowed": False, "status": {"message": "the pod contains unwanted label;"}}
    reason = _VERDICTS["/configmaps"](_admission("UPDATE", data=marked))["status"]["reason"]
    assert reason == "the configmap contains unwanted key and value"
    assert _VERDICTS["/configmaps"](_admission("DELETE", data=marked)) == {"allowed": True}
    assert "patch" in _VERDICTS["/mutating-configmaps"](_admission("CREATE", data={"mutation-start": "yes"}))
    assert not _VERDICTS["/crd"](_admission("CREATE", metadata={"labels": marked}))["allowed"]


def test_conversion_between_the_two_versions() -> None:
    one = {"apiVersion": "stable.example.com/v1", "kind": "X", "hostPort": "a:80"}
    two = {"apiVersion": "stable.example.com/v2", "kind": "X", "host": "a", "port": "80"}
    for start, end in ((one, two), (two, one)):
        request = {"uid": "u", "desiredAPIVersion": end["apiVersion"], "objects": [start]}
        assert _converted(request) == {"uid": "u", "convertedObjects": [end], "result": {"status": "Success"}}
    failed = _converted({"uid": "u", "desiredAPIVersion": "stable.example.com/v3", "objects": [one]})
    assert failed["result"] == {
        "status": "Failure",
        "message": 'unexpected conversion version "stable.example.com/v3"',
    }


def test_changes_of_the_network_need_a_capability(machine: Machine) -> None:
    add = "ip link add dummy0 type dummy"
    plain = machine.sh(add)
    assert (plain.status, plain.err) == (2, "ip: RTNETLINK answers: Operation not permitted\n")
    privileged = machine.idle(capabilities=DEFAULT_CAPABILITIES | {"NET_ADMIN"})
    assert machine.sh(f"{add} && ip link", privileged).out.count("dummy0") == 1
    assert machine.sh(add, privileged).err == "ip: RTNETLINK answers: File exists\n"
    assert "dummy0" not in machine.sh("ip link del dummy0; ip link", privileged).out


def test_kernel_parameters_are_those_of_the_pod(machine: Machine) -> None:
    machine.pod = {"spec": {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}}}
    shell = machine.idle()
    assert machine.sh("sysctl kernel.shm_rmid_forced", shell).out == "kernel.shm_rmid_forced = 1\n"
    assert machine.sh("cat /proc/sys/net/ipv4/ip_local_port_range", shell).out == "32768\t60999\n"


def test_variables_that_a_shell_cannot_name_reach_its_children(machine: Machine) -> None:
    assert "data-1=x\n" in machine.sh("env", machine.idle(env={"data-1": "x", "PATH": "/bin"})).out


def test_the_guestbook_keeps_entries_and_sends_them_to_replicas(machine: Machine) -> None:
    machine.container(IMAGE, args=["guestbook", "--http-port", "6379"])
    shell = machine.idle("nicolaka/netshoot")
    assert machine.sh("curl -s 'localhost:6379/set?key=messages&value=hi'", shell).out == '{"message":"Updated"}'
    assert machine.sh("curl -s 'localhost:6379/get?key=messages'", shell).out == '{"data":"hi"}'
    assert machine.sh("curl -s 'localhost:6379/guestbook?cmd=burn'", shell).out == "unsupported cmd: 'burn'\n"
    joining = machine.container(IMAGE, args=["guestbook", "--http-port", "3000", "--replicaof", "127.0.0.1"])
    machine.clock.advance(1)
    assert "Registered to node: 127.0.0.1" in joining.log.text()
    assert machine.sh("curl -s localhost:3000/get", shell).out == '{"data":{"messages":"hi"}}'


def test_port_forward_tester_reads_what_it_expects_and_sends_its_chunks(machine: Machine) -> None:
    env = {"BIND_PORT": "80", "EXPECTED_CLIENT_DATA": "abc", "CHUNKS": "3", "CHUNK_SIZE": "4", "CHUNK_INTERVAL": "10"}
    container = machine.container(IMAGE, args=["port-forward-tester"], env=env)
    listener = container.namespace.find("127.0.0.1", 80)
    assert listener is not None
    connection = listener.connect(("127.0.0.1", 40000), ("127.0.0.1", 80))
    received = []

    async def talk() -> None:
        await connection.write(b"abc")
        while data := await connection.read():
            received.append(data)

    machine.clock.spawn(talk())
    machine.clock.advance(5)
    assert b"".join(received) == b"x" * 12
    lines = ("Accepted client connection", "Received expected client data", "Shutting down connection", "Done")
    assert container.log.text() == "".join(f"{line}\n" for line in lines)
    assert container.done.value.code == 0


@pytest.mark.parametrize("name", ["httpd:2.4.38-4", "nginx:1.15-4"])
def test_web_servers_of_the_tests_have_the_shell_of_alpine(machine: Machine, name: str) -> None:
    container = machine.idle(f"registry.k8s.io/e2e-test-images/{name}")
    found = machine.sh('touch /tmp/ready; [[ "$(cat /tmp/ready)" == "" ]]', container)
    assert (found.status, found.err) == (0, "")
    assert machine.sh("[[ a == a ]]", machine.idle("httpd:2.4.58")).status == 127
