"""The command lines and configuration files of a cluster's programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.real_cluster.addons import KUBE_ROUTER
from tests.real_cluster.certificates import Authority
from tests.real_cluster.layout import (
    API_SERVICE,
    CONTROL_PLANE,
    DNS_SERVICE,
    HOST_ADDRESS,
    POD_RANGE,
    RUNNING,
    SERVICE_RANGE,
    Node,
)

ETCD = f"http://{CONTROL_PLANE.address}:2379"
ISSUER = "https://kubernetes.default.svc.cluster.local"


def etcd() -> list[str]:
    return [
        str(RUNNING),
        "etcd",
        f"--data-dir={CONTROL_PLANE.folder / 'etcd'}",
        f"--listen-client-urls={ETCD}",
        f"--advertise-client-urls={ETCD}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--unsafe-no-fsync",
    ]


def kube_apiserver(keys: Path) -> list[str]:
    return [
        str(RUNNING),
        "kube-apiserver",
        f"--etcd-servers={ETCD}",
        f"--bind-address={CONTROL_PLANE.address}",
        f"--advertise-address={CONTROL_PLANE.address}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--client-ca-file={keys}/ca.crt",
        f"--tls-cert-file={keys}/apiserver.crt",
        f"--tls-private-key-file={keys}/apiserver.key",
        f"--kubelet-client-certificate={keys}/apiserver-kubelet.crt",
        f"--kubelet-client-key={keys}/apiserver-kubelet.key",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={keys}/sa.crt",
        f"--service-account-signing-key-file={keys}/sa.key",
        f"--proxy-client-cert-file={keys}/front-proxy.crt",
        f"--proxy-client-key-file={keys}/front-proxy.key",
        f"--requestheader-client-ca-file={keys}/ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
    ]


def kube_controller_manager(keys: Path) -> list[str]:
    return [
        str(RUNNING),
        "kube-controller-manager",
        f"--kubeconfig={keys}/controller-manager.kubeconfig",
        "--bind-address=127.0.0.1",
        f"--root-ca-file={keys}/ca.crt",
        f"--cluster-signing-cert-file={keys}/ca.crt",
        f"--cluster-signing-key-file={keys}/ca.key",
        f"--service-account-private-key-file={keys}/sa.key",
        "--use-service-account-credentials=true",
        "--allocate-node-cidrs=true",
        f"--cluster-cidr={POD_RANGE}",
        "--leader-elect=false",
    ]


def kube_scheduler(keys: Path) -> list[str]:
    return [
        str(RUNNING),
        "kube-scheduler",
        f"--kubeconfig={keys}/scheduler.kubeconfig",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    ]


def kube_proxy(node: Node, keys: Path) -> list[str]:
    return [
        str(RUNNING),
        "kube-proxy",
        f"--kubeconfig={keys}/kube-proxy.kubeconfig",
        f"--hostname-override={node.name}",
        "--proxy-mode=iptables",
        # Pods keep their address towards a Service's pods, so that network policies can tell who is there.
        f"--cluster-cidr={POD_RANGE}",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]


def kube_router(node: Node, keys: Path) -> list[str]:
    """Network policies only: routes are static, and Services are kube-proxy's."""
    return [
        str(KUBE_ROUTER.path),
        f"--kubeconfig={keys}/kube-router.kubeconfig",
        f"--hostname-override={node.name}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
    ]


def containerd(node: Node) -> list[str]:
    """Also writes the configuration of containerd and of the pod network."""
    folder = node.folder
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    (folder / "containerd.toml").write_text(
        f"""version = 2
root = "{folder}/containerd"
state = "/run/containerd/state"
oom_score = 0
[grpc]
  address = "/run/containerd/containerd.sock"
[{cri}]
  sandbox_image = "registry.k8s.io/pause:3.10"
  restrict_oom_score_adj = true
  disable_apparmor = true
[{cri}.containerd]
  snapshotter = "overlayfs"
[{cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[{cri}.cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{folder}/cni"
"""
    )
    network = {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": node.pod_range}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "dataDir": f"{folder}/addresses",
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
    (folder / "cni").mkdir(exist_ok=True)
    (folder / "cni" / "10-pods.conflist").write_text(json.dumps(network, indent=1))
    return ["containerd", "--config", str(folder / "containerd.toml")]


def kubelet(node: Node, keys: Path) -> list[str]:
    """Also writes the kubelet's configuration. Outside the cluster there is nobody to ask for names."""
    (node.folder / "resolv.conf").write_text(f"nameserver {HOST_ADDRESS}\n")
    configuration: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{keys}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "failCgroupV1": False,
        "failSwapOn": False,
        # An image that is removed because this machine's disk is rather full could not be pulled again.
        "imageGCHighThresholdPercent": 100,
        "oomScoreAdj": 0,
        "tlsCertFile": f"{keys}/kubelet-{node.name}.crt",
        "tlsPrivateKeyFile": f"{keys}/kubelet-{node.name}.key",
        "resolvConf": str(node.folder / "resolv.conf"),
        "volumePluginDir": str(node.folder / "volume-plugins"),
    }
    if node == CONTROL_PLANE:
        configuration["registerWithTaints"] = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    path = node.folder / "kubelet.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return [
        str(RUNNING),
        "kubelet",
        f"--config={path}",
        f"--kubeconfig={keys}/kubelet-{node.name}.kubeconfig",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        f"--root-dir={node.folder / 'kubelet'}",
        f"--cert-dir={node.folder / 'kubelet-certificates'}",
    ]


def make_keys(authority: Authority, nodes: list[Node]) -> Path:
    """All certificates and kubeconfigs of a cluster; the administrator's kubeconfig."""
    hosts = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
    authority.issue("apiserver", "kube-apiserver", hosts=(*hosts, "localhost", CONTROL_PLANE.address, API_SERVICE))
    authority.issue("apiserver-kubelet", "kube-apiserver-kubelet-client", "system:masters")
    authority.issue("front-proxy", "front-proxy-client")
    authority.issue("sa", "service-accounts")
    authority.kubeconfig("controller-manager", "system:kube-controller-manager")
    authority.kubeconfig("scheduler", "system:kube-scheduler")
    authority.kubeconfig("kube-proxy", "system:kube-proxy")
    authority.kubeconfig("kube-router", "kube-router")
    for node in nodes:
        own = (node.name, node.address)
        authority.kubeconfig(f"kubelet-{node.name}", f"system:node:{node.name}", "system:nodes", own)
    return authority.kubeconfig("admin", "kubernetes-admin", "system:masters")
