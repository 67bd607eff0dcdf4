"""Programs: what the known images do when they start, serve, fail and stop."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.machine.containers.container import Container, StartError
from srearena.cluster.embedded.machine.files.filesystem import Mount, Volume
from srearena.cluster.embedded.machine.files.inodes import Directory, File
from tests.containers.machine import Machine

MEBI = 1024 * 1024


def folder(**files: str) -> Volume:
    return Volume(Directory(entries={name.replace("__", "."): File(text.encode()) for name, text in files.items()}))


def ended(machine: Machine, container: Container, seconds: float = 60.0) -> int:
    machine.clock.advance(seconds)
    assert container.done.is_set, container.log.text()
    return container.done.value.code


SERVERS = [
    # image, settings, port, exit code when asked to stop
    ("nginx:1.27", {}, 80, 0),
    ("nginx:1.27-alpine", {}, 80, 0),
    ("nginxinc/nginx-unprivileged", {}, 8080, 0),
    ("httpd:2.4", {}, 80, 0),
    ("hashicorp/http-echo", {"args": ["-text=hi", "-listen=:9999"]}, 9999, 0),
    ("traefik/whoami", {}, 80, 0),
    ("registry.k8s.io/e2e-test-images/agnhost:2.53", {"args": ["netexec", "--http-port=8081"]}, 8081, 0),
    ("redis:7", {}, 6379, 0),
    ("redis", {"args": ["--port", "7000"]}, 7000, 0),
    ("valkey/valkey:8", {}, 6379, 0),
    ("memcached", {"args": ["-p", "11222"]}, 11222, 0),
    ("postgres:17", {"env": {"POSTGRES_PASSWORD": "x"}}, 5432, 0),
    ("mysql:8", {"env": {"MYSQL_ROOT_PASSWORD": "x"}}, 3306, 0),
    ("mariadb:11", {"env": {"MARIADB_ROOT_PASSWORD": "x"}}, 3306, 0),
    ("mongo:7", {}, 27017, 0),
    ("apache/kafka", {}, 9092, 143),
    ("zookeeper", {}, 2181, 143),
    ("rabbitmq:4-management", {}, 15672, 0),
    ("nats", {}, 4222, 0),
    ("consul:1.22", {}, 8500, 1),
    ("docker.io/acme/unknown:v3", {"ports": [{"containerPort": 7777}]}, 7777, 0),
]


@pytest.mark.parametrize(
    "image",
    ["nginx", "redis", "memcached", "postgres", "mysql", "mongo", "apache/kafka", "zookeeper", "rabbitmq", "consul"],
)
def test_images_whose_entrypoint_executes_its_arguments_say_what_is_missing(machine: Machine, image: str) -> None:
    container = machine.container(image, args=["no-such-program", "--auth"])
    assert ended(machine, container) == 127
    assert "exec: no-such-program: not found" in container.log.text()


@pytest.mark.parametrize(("image", "settings", "port", "code"), SERVERS)
def test_a_server_listens_and_stops_when_asked(
    machine: Machine, image: str, settings: dict[str, object], port: int, code: int
) -> None:
    container = machine.container(image, **settings)
    machine.clock.advance(30)
    assert container.running, container.log.text()
    assert machine.namespace.find("10.244.1.5", port) is not None
    assert container.log.end > 0 or "memcached" in image
    container.stop()
    assert ended(machine, container, 10) == code
    assert not machine.namespace.listeners()


@pytest.mark.parametrize("image", ["nginx", "httpd", "redis", "postgres", "mysql", "mongo", "memcached", "nats"])
def test_a_taken_port_is_fatal(machine: Machine, image: str) -> None:
    env = {"POSTGRES_PASSWORD": "x", "MYSQL_ROOT_PASSWORD": "x"}
    first = machine.container(image, env=env)
    machine.clock.advance(30)
    second = machine.container(image, env=env)
    assert ended(machine, second) != 0
    assert first.running
    text = second.log.text().lower()
    assert "address already in use" in text or "bind" in text


@pytest.mark.parametrize(
    ("image", "line", "code"),
    [
        ("postgres", "Error: Database is uninitialized and superuser password is not specified.", 1),
        ("mysql", "[ERROR] [Entrypoint]: Database is uninitialized and password option is not specified", 1),
        ("hashicorp/http-echo", "Missing -text option!", 127),
    ],
)
def test_what_must_be_configured_is_asked_for_in_the_programs_own_words(
    machine: Machine, image: str, line: str, code: int
) -> None:
    container = machine.container(image)
    assert ended(machine, container) == code
    assert line in container.log.text()


# --- nginx -----------------------------------------------------------------------------------------------------


def test_nginx_serves_its_files_and_logs_requests(machine: Machine) -> None:
    pages = folder(index__html="<h1>mine</h1>\n")
    container = machine.container("nginx:1.27.3", mounts=[Mount("/usr/share/nginx/html", pages)])
    machine.clock.advance(1)
    assert machine.sh("curl -s localhost/", container).out == "<h1>mine</h1>\n"
    assert "<h1>404 Not Found</h1>" in machine.sh("curl -s localhost/missing", container).out
    assert "Server: nginx/1.27.3" in machine.sh("curl -sI localhost/", container).out
    log = container.log.text()
    assert "10.244.1.5 - - [13/Nov/2025:02:13:" in log
    assert '"GET / HTTP/1.1" 200 14 "-" "curl/8.5.0" "-"' in log
    assert 'open() "/usr/share/nginx/html/missing" failed (2: No such file or directory), client: 10.244.1.5' in log
    assert {line.stream for line in container.log.lines() if b"GET / " in line.text} == {"stdout"}


def test_what_nginx_serves_changes_with_its_files(machine: Machine) -> None:
    container = machine.container("nginx")
    machine.clock.advance(1)
    page = "/usr/share/nginx/html/index.html"
    answers = []
    for change in ("true", f"echo new > {page}", f"echo more >> {page}", f"rm {page}", f"echo back > {page}"):
        machine.sh(change, container)
        answers.append(machine.sh("curl -s localhost/ | head -n 2 | tr -d '\r\n'", container).out[:28])
    assert answers == ["<!DOCTYPE html><html>", "new", "newmore", "<html><head><title>403 Forbi", "back"]


def test_nginx_holds_its_log_open_until_it_is_told_to_open_it_again(machine: Machine) -> None:
    container = machine.container("nginx")
    machine.clock.advance(1)
    machine.sh("curl -s localhost/; rm /var/log/nginx/access.log; touch /var/log/nginx/access.log", container)
    machine.sh("curl -s localhost/deleted", container)
    assert "GET /deleted HTTP/1.1" in container.log.text()
    machine.sh("nginx -s reopen; curl -s localhost/reopened", container)
    assert '"GET /reopened HTTP/1.1" 404' not in container.log.text()
    assert '"GET /reopened HTTP/1.1" 404' in machine.sh("cat /var/log/nginx/access.log", container).out


def test_nginx_answers_by_its_new_configuration_after_a_reload(machine: Machine) -> None:
    container = machine.container("nginx")
    machine.clock.advance(1)
    machine.sh("curl -s localhost/", container)
    machine.sh("echo 'server { listen 80; return 204; }' > /etc/nginx/conf.d/default.conf", container)
    status = "curl -s -o /dev/null -w '%{http_code}' localhost/"
    assert machine.sh(status, container).out == "200"
    machine.sh("nginx -s reload", container)
    assert machine.sh(status, container).out == "204"


def test_nginx_reads_its_configuration(machine: Machine) -> None:
    config = """
    server {
        listen 8088;
        location /health { return 200 "fine\\n"; }
        location = /gone { return 410; }
        location ~ \\.php$ { return 403; }
        location /static/ { alias /srv/; }
        location /old { return 301 /new; }
    }
    """
    mounts = [Mount("/etc/nginx/conf.d", folder(site__conf=config)), Mount("/srv", folder(a__txt="A\n"))]
    container = machine.container("nginx", mounts=mounts)
    machine.clock.advance(1)
    assert machine.namespace.find("10.244.1.5", 80) is None
    script = (
        "for p in health gone x.php static/a.txt old; do curl -s -o /tmp/o -w '%{http_code} ' localhost:8088/$p; done"
    )
    assert machine.sh(script, container).out == "200 410 403 200 301 "
    assert machine.sh("curl -s localhost:8088/health localhost:8088/static/a.txt", container).out == "fine\nA\n"


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ("server { lisen 80; }", 'nginx: [emerg] unknown directive "lisen" in /etc/nginx/conf.d/site.conf:1'),
        ("server { listen 80; ", 'unexpected end of file, expecting "}" in /etc/nginx/conf.d/site.conf:1'),
        (
            "server { listen 99999; }",
            'invalid port in "99999" of the "listen" directive in /etc/nginx/conf.d/site.conf:1',
        ),
        (
            "server {\n listen 80;\n location / { proxy_pass http://backend:8080; }\n}",
            'nginx: [emerg] host not found in upstream "backend" in /etc/nginx/conf.d/site.conf:3',
        ),
        ("include /etc/nginx/missing.conf;", 'open() "/etc/nginx/missing.conf" failed (2: No such file or directory)'),
    ],
)
def test_a_broken_configuration_ends_nginx_with_the_place(machine: Machine, config: str, complaint: str) -> None:
    container = machine.container("nginx", mounts=[Mount("/etc/nginx/conf.d", folder(site__conf=config))])
    assert ended(machine, container) == 1
    assert complaint in container.log.text()


def test_nginx_forwards_and_says_what_is_wrong_with_its_upstream(machine: Machine) -> None:
    config = "server { listen 80; location / { proxy_pass http://web-0:9000; } }"
    container = machine.container("nginx", mounts=[Mount("/etc/nginx/conf.d", folder(site__conf=config))])
    machine.clock.advance(1)
    assert machine.sh("curl -s -o /dev/null -w '%{http_code}' localhost", container).out == "502"
    assert "connect() failed (111: Connection refused) while connecting to upstream" in container.log.text()
    machine.container("hashicorp/http-echo", args=["-text=upstream", "-listen=:9000"])
    machine.clock.advance(1)
    assert machine.sh("curl -s localhost", container).out == "upstream\n"


def test_nginx_needs_its_cache_directory(machine: Machine) -> None:
    stranger = machine.container("nginx", uid=1000)
    assert ended(machine, stranger) == 1
    assert '[emerg] mkdir() "/var/cache/nginx/client_temp" failed (13: Permission denied)' in stranger.log.text()
    frozen = machine.container("nginx", read_only_root=True)
    assert ended(machine, frozen) == 1
    assert "failed (30: Read-only file system)" in frozen.log.text()
    mounts = [Mount("/var/cache/nginx", Volume()), Mount("/run", Volume())]
    assert machine.container("nginx", read_only_root=True, mounts=mounts).running


def test_nginx_reloads_and_keeps_what_worked_when_the_new_configuration_is_broken(machine: Machine) -> None:
    sites = folder(site__conf='server { listen 80; location / { return 200 "one\\n"; } }')
    container = machine.container("nginx", mounts=[Mount("/etc/nginx/conf.d", sites)])
    machine.clock.advance(1)
    sites.root.put("site.conf", File(b'server { listen 80; location / { return 200 "two\\n"; } }'))
    machine.sh("nginx -t && nginx -s reload", container)
    machine.clock.advance(1)
    assert machine.sh("curl -s localhost", container).out == "two\n"
    sites.root.put("site.conf", File(b"server { nonsense; }"))
    assert machine.sh("nginx -t", container).status == 1
    machine.sh("kill -HUP 1", container)
    machine.clock.advance(1)
    assert machine.sh("curl -s localhost", container).out == "two\n"
    assert 'unknown directive "nonsense"' in container.log.text()


def test_nginx_finishes_what_it_serves_before_it_quits(machine: Machine) -> None:
    machine.container("mccutchen/go-httpbin")
    config = "server { listen 81; location / { proxy_pass http://web-0:8080; } }"
    slow = machine.container("nginx", mounts=[Mount("/etc/nginx/conf.d", folder(site__conf=config))])
    container = machine.idle("nicolaka/netshoot")
    machine.clock.advance(1)
    client = container.exec(["curl", "-s", "-o", "/dev/null", "http://localhost:81/delay/5"])
    machine.clock.advance(1)
    slow.stop()
    machine.clock.advance(2)
    assert slow.running
    machine.clock.advance(5)
    assert client.done.value == 0
    assert slow.done.value.code == 0


# --- data stores -----------------------------------------------------------------------------------------------


def test_redis_answers_its_command_line_client(machine: Machine) -> None:
    container = machine.container("redis:7")
    machine.clock.advance(1)
    assert machine.run(container, ["redis-cli", "ping"]).out == "PONG\n"
    assert machine.sh("redis-cli set k v; redis-cli get k; redis-cli incr n; redis-cli keys '*'", container).out == (
        "OK\nv\n1\nk\nn\n"
    )
    assert machine.sh("redis-cli set e 1 EX 10; sleep 11; redis-cli get e", container).out == "OK\n\n"
    assert "unknown command" in machine.sh("redis-cli nonsense", container).out
    assert machine.run(container, ["redis-cli", "-p", "1", "ping"]).err == (
        "Could not connect to Redis at 127.0.0.1:1: Connection refused\n"
    )


def test_redis_with_a_password_asks_for_it(machine: Machine) -> None:
    container = machine.container("redis", args=["--requirepass", "s3cret"])
    machine.clock.advance(1)
    assert machine.run(container, ["redis-cli", "get", "k"]).out == "NOAUTH Authentication required.\n\n"
    assert machine.run(container, ["redis-cli", "-a", "s3cret", "ping"]).out == "PONG\n"
    assert "WRONGPASS" in machine.run(container, ["redis-cli", "-a", "wrong", "ping"]).err


def test_redis_grows_with_its_data_until_the_limit_kills_it(machine: Machine) -> None:
    container = machine.container("redis", memory_limit=20 * MEBI)
    machine.clock.advance(1)
    script = (
        "x=$(head -c 1000000 /dev/zero | tr '\\0' x); i=0; while redis-cli set k$i $x > /dev/null; do i=$((i+1)); done"
    )
    machine.sh(script, container)
    assert container.done.value.reason == "OOMKilled"


def test_postgres_keeps_its_data_directory(machine: Machine) -> None:
    data = Volume()
    env = {"POSTGRES_PASSWORD": "x"}
    first = machine.container("postgres:17", env=env, mounts=[Mount("/var/lib/postgresql/data", data)])
    machine.clock.advance(10)
    assert machine.run(first, ["pg_isready"]).out == "/var/run/postgresql:5432 - accepting connections\n"
    first.stop()
    assert ended(machine, first) == 0
    second = machine.container("postgres:17", mounts=[Mount("/var/lib/postgresql/data", data)])
    machine.clock.advance(10)
    assert "Skipping initialization" in second.log.text()
    assert "database system is ready to accept connections" in second.log.text()


def test_postgres_is_not_ready_before_it_is(machine: Machine) -> None:
    container = machine.container("postgres:17", env={"POSTGRES_PASSWORD": "x"})
    early = machine.run(container, ["pg_isready"])
    assert (early.out, early.status) == ("/var/run/postgresql:5432 - no response\n", 2)


def test_mongo_tells_web_browsers_where_they_are(machine: Machine) -> None:
    machine.container("mongo:7")
    machine.clock.advance(3)
    outcome = machine.sh("curl -s http://localhost:27017/", machine.idle("nicolaka/netshoot"))
    assert outcome.out.startswith("It looks like you are trying to access MongoDB over HTTP on the native driver port.")


def test_memcached_stores_and_evicts(machine: Machine) -> None:
    machine.container("memcached", args=["-m", "1"])
    shell = machine.idle("busybox")
    script = "printf 'set k 0 0 5\\r\\nhello\\r\\nget k\\r\\nget z\\r\\nversion\\r\\nquit\\r\\n' | nc localhost 11211"
    assert machine.sh(script, shell).out == "STORED\r\nVALUE k 0 5\r\nhello\r\nEND\r\nEND\r\nVERSION 1.6.39\r\n"


def test_consul_registers_and_finds_services(machine: Machine) -> None:
    machine.container("consul:1.22")
    machine.clock.advance(2)
    shell = machine.idle("nicolaka/netshoot")
    body = '{"Name": "rate", "ID": "rate-1", "Address": "10.1.2.3", "Port": 8084}'
    base = "http://localhost:8500/v1"
    machine.sh(f"curl -s -X PUT -d '{body}' {base}/agent/service/register", shell)
    found = machine.sh(f"curl -s {base}/health/service/rate", shell).out
    assert '"Address": "10.1.2.3"' in found and '"Port": 8084' in found
    assert machine.sh(f"curl -s {base}/health/service/other", shell).out == "[]"


# --- others ----------------------------------------------------------------------------------------------------


def test_shell_images_run_what_they_are_told_or_nothing(machine: Machine) -> None:
    assert ended(machine, machine.container("ubuntu"), 1) == 0
    assert ended(machine, machine.container("alpine", args=["echo", "hi"]), 1) == 0
    failing = machine.container("busybox", args=["sh", "-c", "echo oops >&2; exit 3"])
    assert (ended(machine, failing, 1), failing.log.text()) == (3, "oops\n")


def test_the_liveness_example_is_well_for_ten_seconds(machine: Machine) -> None:
    machine.container("registry.k8s.io/e2e-test-images/agnhost:2.40", args=["liveness"])
    shell = machine.idle("nicolaka/netshoot")
    ask = "curl -s -o /dev/null -w '%{http_code}' localhost:8080/healthz"
    assert machine.sh(ask, shell).out == "200"
    machine.clock.advance(12)
    assert machine.sh(ask, shell).out == "500"


def test_python_serves_a_directory_and_ignores_sigterm_as_process_1(machine: Machine) -> None:
    container = machine.container("python:3.12", "python", "-m", "http.server", "8000", working_dir="/srv")
    machine.sh("echo hello > /srv/a.txt", container)
    assert machine.sh("curl -s localhost:8000/a.txt", container).out == "hello\n"
    assert '<a href="a.txt">' in machine.sh("curl -s localhost:8000/", container).out
    assert '"GET /a.txt HTTP/1.1" 200 -' in container.log.text()
    container.stop()
    machine.clock.advance(30)
    assert container.running


@pytest.mark.parametrize(
    ("image", "command", "code", "text"),
    [
        (
            "python",
            ["python", "missing.py"],
            2,
            "python: can't open file '/missing.py': [Errno 2] No such file or directory",
        ),
        ("python", ["python", "-c", "import sys; print('hi'); sys.exit(4)"], 4, "hi"),
        ("python", ["python", "-c", "raise ValueError('bad')"], 1, "ValueError: bad"),
        ("node", ["node", "server.js"], 1, "Error: Cannot find module '/server.js'"),
        ("eclipse-temurin", ["java", "-jar", "app.jar"], 1, "Error: Unable to access jarfile app.jar"),
    ],
)
def test_runtimes_miss_what_they_are_to_run(
    machine: Machine, image: str, command: list[str], code: int, text: str
) -> None:
    container = machine.container(image, *command)
    assert ended(machine, container, 5) == code
    assert text in container.log.text()


@pytest.mark.parametrize(
    "script", ["print(sum(range(10)))", "import socket; socket.socket().listen()", "print('a'); x = 1"]
)
def test_a_script_that_is_not_modelled_is_refused_by_hand(machine: Machine, script: str) -> None:
    """As the container's own command it is a server like any other."""
    container = machine.container("python:3.12", "python", "-c", script)
    machine.clock.advance(30)
    assert container.running
    done = machine.run(container, ["python3", "-c", script])
    assert (done.status, done.out, done.err) == (126, "", "python3: exec format error\n")


def test_pip_reaches_no_package_index(machine: Machine) -> None:
    done = machine.sh("pip install requests; echo $?", machine.container("python:3.12", "sleep", "99"))
    assert done.out == "1\n"
    assert "Temporary failure in name resolution" in done.err
    assert "ERROR: No matching distribution found for requests" in done.err


def test_the_autoscaling_example_burns_what_its_limit_allows(machine: Machine) -> None:
    container = machine.container("registry.k8s.io/hpa-example", cpu_limit=0.5)
    shell = machine.idle()
    before = container.meter.cpu_seconds()
    loop = shell.exec(["sh", "-c", "while sleep 0.01; do wget -q -O- http://localhost; done"])
    machine.clock.advance(30)
    assert container.meter.cpu_seconds() - before == pytest.approx(15, rel=0.15)
    assert container.meter.nr_throttled > 50
    assert not loop.done.is_set


def test_an_unknown_image_listens_where_its_pod_says(machine: Machine) -> None:
    container = machine.container(
        "acme/api:1", ports=[{"containerPort": 8080}, {"containerPort": 53, "protocol": "UDP"}]
    )
    assert {(listener.port, listener.protocol) for listener in machine.namespace.listeners()} == {
        (8080, "TCP"),
        (53, "UDP"),
    }
    assert container.log.text() == "listening on :8080, :53\n"
    clash = machine.container("acme/other:1", ports=[{"containerPort": 8080}])
    assert ended(machine, clash, 1) == 1
    assert clash.log.text() == "listen tcp :8080: bind: address already in use\n"


def test_an_unknown_image_without_ports_follows_its_probes(machine: Machine) -> None:
    machine.pod = {"spec": {"containers": [{"name": "app", "readinessProbe": {"httpGet": {"port": 3000}}}]}}
    machine.container("acme/api:1")
    assert [listener.port for listener in machine.namespace.listeners()] == [3000]


def test_a_command_missing_in_an_unknown_image_is_an_error(machine: Machine) -> None:
    with pytest.raises(StartError, match="executable file not found"):
        machine.container("acme/api:1", "serve-it")


def test_the_same_seed_gives_the_same_world() -> None:
    def history(seed: int) -> list[tuple[float, str, bytes]]:
        machine = Machine(seed)
        containers = [machine.container(image) for image in ("nginx", "redis", "mongo")]
        shell = machine.container(
            "busybox", "sh", "-c", "while :; do wget -qO- localhost; mktemp -u /tmp/XXXXXXXX; sleep 3; done"
        )
        machine.clock.advance(60)
        return [tuple(line[:3]) for container in (*containers, shell) for line in container.log.lines()]  # type: ignore[misc]

    assert history(5) == history(5)
    assert history(5) != history(6)
