"""A minimal cluster: nodes, pods with open ports, Services with their slices, and a CoreDNS."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.network import Network, Reach, start
from srearena.cluster.embedded.network.dns.coredns import CoreDns
from srearena.cluster.embedded.network.dns.corefile import DEFAULT_COREFILE, load
from srearena.cluster.embedded.network.external_hosts import Daemon
from srearena.cluster.embedded.network.network_client import NetworkClient
from srearena.cluster.embedded.network.resolv import HOST_RESOLV_CONF
from srearena.cluster.embedded.objects import Obj, copy_of, dig, name_of, namespace_of
from srearena.cluster.embedded.world import World

T = TypeVar("T")
SLICES = "endpointslices.discovery.k8s.io"
POLICIES = "networkpolicies.networking.k8s.io"


class Bench:
    def __init__(self, *, nodes: int = 2, dns: bool = True, proxies: bool = True, corefile: str = DEFAULT_COREFILE):
        self.world = World(seed=1, start=1_700_000_000.0)
        self.store = self.world.store
        self.clock = self.world.clock
        self.network: Network = start(self.world)
        self._numbers = 0
        self.coredns: dict[str, CoreDns] = {}
        for name in ("default", "kube-system", "shop"):
            self.namespace(name)
        for number in range(1, nodes + 1):
            self.node(f"node-{number}", number, proxy=proxies)
        if dns:
            pod = self.pod("coredns", "kube-system", labels={"k8s-app": "kube-dns"}, ports=())
            self.run_dns(pod, corefile)
            self.service("kube-dns", "kube-system", [pod], port=53, protocol="UDP", ip="10.96.0.10")

    # Objects

    def namespace(self, name: str, **labels: str) -> Obj:
        labels = {"kubernetes.io/metadata.name": name, **labels}
        return self.store.put("namespaces", {"metadata": {"name": name, "labels": labels}})

    def node(self, name: str, number: int, *, proxy: bool = True) -> None:
        sockets = NetworkNamespace(self.clock, (f"172.18.0.{number + 1}",))
        self.store.put("nodes", {"metadata": {"name": name, "labels": {}}})
        self.network.attach_node(name, sockets, f"10.244.{number}.0/24")
        if proxy:
            self.network.fabric.proxies.started(name)

    def pod(
        self,
        name: str,
        namespace: str = "default",
        *,
        node: str = "node-1",
        labels: dict[str, str] | None = None,
        ports: Iterable[int] = (80,),
        bind: str = "0.0.0.0",
        protocol: str = "TCP",
        spec: Obj | None = None,
    ) -> Obj:
        self._numbers += 1
        host_network = bool((spec or {}).get("hostNetwork"))
        host = self.network.fabric.hosts.nodes[node]
        address = host.address if host_network else f"10.244.{node.rpartition('-')[2]}.{self._numbers + 1}"
        containers = [{"name": "main", "ports": [{"containerPort": port, "name": f"port-{port}"} for port in ports]}]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"uid-{namespace}-{name}-{self._numbers}",
                "labels": labels or {"app": name},
            },
            "spec": {"nodeName": node, "containers": containers, **(spec or {})},
            "status": {"podIP": address, "phase": "Running"},
        }
        self.store.put("pods", pod)
        sockets = host.sockets if host_network else NetworkNamespace(self.clock, (address,))
        self.network.attach_pod(pod, sockets)
        for port in ports:
            self.listen(pod, port, bind=bind, protocol=protocol)
        return pod

    def listen(self, pod: Obj, port: int, *, bind: str = "0.0.0.0", protocol: str = "TCP") -> None:
        async def hello(request: HttpRequest) -> HttpResponse:
            return HttpResponse.text(f"{name_of(pod)} saw {request.peer}")

        async def echo(data: bytes, peer: str) -> bytes:
            return data

        sockets = self.host(pod).sockets
        sockets.listen(Daemon(self.clock, "server"), port, address=bind, protocol=protocol, http=hello, datagram=echo)

    def stop_listening(self, pod: Obj, port: int) -> None:
        for listener in self.host(pod).sockets.listeners():
            if listener.port == port:
                listener.close()

    def remove(self, pod: Obj) -> None:
        self.network.detach_pod(pod["metadata"]["uid"])
        self.store.remove("pods", namespace_of(pod), name_of(pod))

    def service(
        self,
        name: str,
        namespace: str = "default",
        pods: Iterable[Obj] = (),
        *,
        port: int = 80,
        target: int | None = None,
        protocol: str = "TCP",
        ip: str = "",
        **spec: Any,
    ) -> Obj:
        self._numbers += 1
        address = ip or f"10.96.1.{self._numbers}"
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace, "uid": f"svc-{namespace}-{name}"},
            "spec": {
                "type": "ClusterIP",
                "clusterIP": address,
                "ports": [{"port": port, "protocol": protocol, "name": "main", **spec.pop("portspec", {})}],
                **spec,
            },
        }
        self.store.put("services", service)
        self.slice(service, pods, target or port)
        return service

    def slice(self, service: Obj, pods: Iterable[Obj], target: int, **conditions: bool) -> None:
        port = service["spec"]["ports"][0]
        endpoints = []
        for pod in pods:
            endpoint: Obj = {
                "addresses": [pod["status"]["podIP"]],
                "nodeName": pod["spec"]["nodeName"],
                "conditions": {"ready": True, "serving": True, "terminating": False, **conditions},
                "targetRef": {"kind": "Pod", "name": name_of(pod), "namespace": namespace_of(pod)},
            }
            if pod["spec"].get("subdomain") == name_of(service):
                endpoint["hostname"] = pod["spec"].get("hostname")
            endpoints.append(endpoint)
        self.store.put(
            SLICES,
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "name": f"{name_of(service)}-x",
                    "namespace": namespace_of(service),
                    "labels": {"kubernetes.io/service-name": name_of(service)},
                },
                "addressType": "IPv4",
                "endpoints": endpoints,
                "ports": [{"name": port["name"], "port": target, "protocol": port["protocol"]}],
            },
        )

    def change(self, resource: str, obj: Obj, *path: str, to: Any) -> Obj:
        """Store a changed copy of an object."""
        new = copy_of(self.store.get(resource, namespace_of(obj), name_of(obj)) or obj)
        parent = dig(new, *path[:-1]) if len(path) > 1 else new
        parent[path[-1]] = to
        return self.store.put(resource, new)

    def policy(self, name: str, namespace: str, spec: Obj) -> Obj:
        return self.store.put(POLICIES, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})

    def run_dns(self, pod: Obj, corefile: str) -> CoreDns:
        host = self.host(pod)
        configuration = load(corefile, read={"/etc/resolv.conf": HOST_RESOLV_CONF}.get)
        server = self.network.name_server(host, configuration)
        for port in configuration.ports:
            listener = host.sockets.listen(Daemon(self.clock, "coredns"), port, protocol="UDP")
            self.network.name_servers.serve(listener, server.name_server(port))
        self.coredns[name_of(pod)] = server
        return server

    # Questions

    def host(self, pod: Obj) -> Any:
        return self.network.fabric.hosts.pods[pod["metadata"]["uid"]]

    def facade(self, pod: Obj) -> NetworkClient:
        return self.network.client_of(self.host(pod))

    def reach(self, pod: Obj, host: str, port: int = 80, protocol: str = "TCP", timeout: float | None = None) -> Reach:
        return self.network.reach(self.host(pod), host, port, protocol, timeout=timeout)

    def run(self, coroutine: Coroutine[Any, Any, T], limit: float = 1000.0) -> T:
        """Run a coroutine on the virtual clock."""
        task = self.clock.spawn(coroutine)
        end = self.clock.now + limit
        while not task.done.is_set:
            following = self.clock.next_event_at()
            assert following is not None and following <= end, "it never ended"
            self.clock.run_until(following)
        value = task.done.value
        assert value is not None
        return value

    def get(self, pod: Obj, host: str, port: int = 80, **options: Any) -> Any:
        return self.run(self.facade(pod).http(host, port, HttpRequest(), **options))
