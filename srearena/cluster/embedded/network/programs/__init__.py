"""Programs of the network: CoreDNS, kube-proxy, the ingress controller, fortio. Importing this registers them."""

from srearena.cluster.embedded.network.programs import coredns, fortio, ingress_nginx, kube_proxy

__all__ = ["coredns", "fortio", "ingress_nginx", "kube_proxy"]
