"""The files the kubelet writes for every pod: hosts and resolv.conf."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, dig, namespace_of

CLUSTER_DOMAIN = "cluster.local"
CLUSTER_DNS = "10.96.0.10"
HOST_NAME_SERVERS = ("172.18.0.1",)
MAX_NAME_SERVERS = 3
MAX_SEARCH_DOMAINS = 32

_LOCAL = (
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    "fe00::\tip6-localnet",
    "fe00::\tip6-mcastprefix",
    "fe00::1\tip6-allnodes",
    "fe00::2\tip6-allrouters",
)


def hosts_file(pod: Obj, address: str, hostname: str) -> str:
    """The hosts file of a pod that has that address and host name."""
    spec = pod["spec"]
    if spec.get("hostNetwork"):
        lines = ["# Kubernetes-managed hosts file (host network).", *_LOCAL[:2]]
    else:
        lines = ["# Kubernetes-managed hosts file.", *_LOCAL, _own_line(spec, namespace_of(pod), address, hostname)]
    aliases = spec.get("hostAliases") or ()
    if aliases:
        lines += ["", "# Entries added by HostAliases."]
        lines += ["\t".join((alias["ip"], *(alias.get("hostnames") or ()))) for alias in aliases]
    return "\n".join(lines) + "\n"


def _own_line(spec: Obj, namespace: str, address: str, hostname: str) -> str:
    subdomain = spec.get("subdomain")
    if subdomain:
        full = f"{hostname}.{subdomain}.{namespace}.svc.{CLUSTER_DOMAIN}"
        return f"{address}\t{full}\t{hostname}"
    return f"{address}\t{hostname}"


def resolver_file(pod: Obj, name_servers: tuple[str, ...] = (CLUSTER_DNS,), domain: str = CLUSTER_DOMAIN) -> str:
    """resolv.conf after the pod's dnsPolicy and dnsConfig, and the settings of its node's kubelet."""
    spec = pod["spec"]
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    if policy == "ClusterFirst" and spec.get("hostNetwork"):
        policy = "Default"
    servers: list[str] = []
    search: list[str] = []
    options: dict[str, str | None] = {}
    if policy in ("ClusterFirst", "ClusterFirstWithHostNet") and name_servers:
        servers = list(name_servers)
        search = [f"{namespace_of(pod)}.svc.{domain}", f"svc.{domain}", domain] if domain else []
        options = {"ndots": "5"}
    elif policy != "None":
        servers = list(HOST_NAME_SERVERS)
        options = {"ndots": "0"}
    custom = spec.get("dnsConfig") or {}
    servers = list(dict.fromkeys([*servers, *(custom.get("nameservers") or ())]))[:MAX_NAME_SERVERS]
    search = list(dict.fromkeys([*search, *(custom.get("searches") or ())]))[:MAX_SEARCH_DOMAINS]
    for option in custom.get("options") or ():
        options[option["name"]] = dig(option, "value")
    lines = []
    if search:
        lines.append(f"search {' '.join(search)}")
    lines += [f"nameserver {server}" for server in servers]
    if options:
        words = [name if value is None else f"{name}:{value}" for name, value in options.items()]
        lines.append(f"options {' '.join(words)}")
    return "\n".join(lines) + "\n"
