"""Files that tell a pod how to resolve names: what the kubelet writes into them, and what a resolver reads there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from srearena.cluster.embedded.network.addresses import CLUSTER_DOMAIN, DNS_ADDRESS, is_address
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of

HOST_RESOLV_CONF = "nameserver 172.18.0.1\noptions ndots:0\n"
HOST_HOSTS = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
MAX_NAMESERVERS = 3
MAX_SEARCHES = 32
MAX_NDOTS = 15
MAX_TIMEOUT = 30
MAX_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class ResolverSettings:
    """What /etc/resolv.conf says."""

    nameservers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def option(self, name: str, default: int, most: int) -> int:
        for option in self.options:
            key, _, value = option.partition(":")
            if key == name and value.isdigit():
                return min(int(value[:6]), most)
        return default

    @property
    def ndots(self) -> int:
        return self.option("ndots", 1, MAX_NDOTS)

    @property
    def timeout(self) -> float:
        return max(1, self.option("timeout", 5, MAX_TIMEOUT))

    @property
    def attempts(self) -> int:
        return max(1, self.option("attempts", 2, MAX_ATTEMPTS))

    def candidates(self, name: str) -> list[str]:
        """The full names a lookup tries, in order, as the C library does it."""
        if name.endswith("."):
            return [name]
        as_is = f"{name}."
        searched = [f"{name}.{domain.rstrip('.')}." if domain != "." else as_is for domain in self.search]
        if name.count(".") >= self.ndots:
            return list(dict.fromkeys((as_is, *searched)))
        return list(dict.fromkeys((*searched, as_is)))

    def text(self) -> str:
        lines = [f"search {' '.join(self.search)}\n"] if self.search else []
        lines += [f"nameserver {server}\n" for server in self.nameservers]
        lines += [f"options {' '.join(self.options)}\n"] if self.options else []
        return "".join(lines)


@lru_cache(maxsize=1024)
def parsed_settings(text: str) -> ResolverSettings:
    """Read a resolv.conf; what makes no sense is passed over. Without a name server, the machine itself is one."""
    nameservers: list[str] = []
    search: tuple[str, ...] = ()
    options: list[str] = []
    for line in text.splitlines():
        words = line.partition("#")[0].partition(";")[0].split()
        if len(words) < 2:
            continue
        if words[0] == "nameserver" and is_address(words[1]):
            nameservers.append(words[1])
        elif words[0] in ("search", "domain"):
            search = tuple(words[1:])
        elif words[0] == "options":
            options += words[1:]
    return ResolverSettings(tuple(nameservers[:MAX_NAMESERVERS]) or ("127.0.0.1",), search, tuple(options))


@lru_cache(maxsize=1024)
def parsed_hosts(text: str) -> dict[str, tuple[str, ...]]:
    """Read a hosts file: addresses by name, in lower case. Never change the result."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1 and is_address(words[0]):
            for name in words[1:]:
                known = found.get(name.lower(), ())
                if words[0] not in known:
                    found[name.lower()] = (*known, words[0])
    return found


def pod_settings(
    pod: Obj, host: str = HOST_RESOLV_CONF, *, dns: Iterable[str] = (DNS_ADDRESS,), domain: str = CLUSTER_DOMAIN
) -> ResolverSettings:
    """What a pod's dnsPolicy and dnsConfig amount to on a machine with that resolv.conf."""
    spec = pod.get("spec") or {}
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    machine = parsed_settings(host)
    if policy == "ClusterFirst" and spec.get("hostNetwork"):
        policy = "Default"
    if policy == "None":
        settings = ResolverSettings()
    elif policy == "Default":
        settings = machine
    else:
        namespace = namespace_of(pod)
        search = [f"{namespace}.svc.{domain}", f"svc.{domain}", domain, *machine.search]
        settings = ResolverSettings(tuple(dns), tuple(dict.fromkeys(search)), ("ndots:5",))
    wishes = spec.get("dnsConfig") or {}
    options = dict(option.partition(":")[::2] for option in settings.options)
    for option in wishes.get("options") or ():
        options[option.get("name", "")] = str(option.get("value") or "")
    return ResolverSettings(
        tuple(dict.fromkeys((*settings.nameservers, *(wishes.get("nameservers") or ()))))[:MAX_NAMESERVERS],
        tuple(dict.fromkeys((*settings.search, *(wishes.get("searches") or ()))))[:MAX_SEARCHES],
        tuple(f"{name}:{value}" if value else name for name, value in options.items() if name),
    )


def resolv_conf(pod: Obj, host: str = HOST_RESOLV_CONF) -> str:
    """The text of a pod's /etc/resolv.conf."""
    return pod_settings(pod, host).text() or host


def hosts_file(pod: Obj, address: str, hostname: str = "", host: str = HOST_HOSTS) -> str:
    """The text of a pod's /etc/hosts, as the kubelet manages it."""
    spec = pod.get("spec") or {}
    if spec.get("hostNetwork"):
        text = f"# Kubernetes-managed hosts file (host network).\n{host}"
    else:
        hostname = hostname or spec.get("hostname") or name_of(pod)
        text = (
            "# Kubernetes-managed hosts file.\n"
            "127.0.0.1\tlocalhost\n"
            "::1\tlocalhost ip6-localhost ip6-loopback\n"
            "fe00::0\tip6-localnet\n"
            "fe00::0\tip6-mcastprefix\n"
            "fe00::1\tip6-allnodes\n"
            "fe00::2\tip6-allrouters\n"
        )
        subdomain = spec.get("subdomain")
        if subdomain:
            full = f"{hostname}.{subdomain}.{namespace_of(pod)}.svc.{CLUSTER_DOMAIN}"
            text += f"{address}\t{full}\t{hostname}\n"
        else:
            text += f"{address}\t{hostname}\n"
    aliases = dig(spec, "hostAliases", default=())
    if aliases:
        lines = ["\t".join([alias.get("ip", ""), *(alias.get("hostnames") or ())]) + "\n" for alias in aliases]
        text += "\n# Entries added by HostAliases.\n" + "".join(lines)
    return text
