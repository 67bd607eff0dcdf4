"""ConfigMaps of the installation: trusted authorities and the kubeadm configuration."""

from __future__ import annotations

from collections.abc import Iterator

from srearena.cluster.embedded.kubelet.node import configuration
from srearena.cluster.embedded.objects import Obj

_CLUSTER_INFO = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {authority}
    server: https://{host}:6443
  name: ""
contexts: null
current-context: ""
kind: Config
users: null
"""
_CLUSTER_CONFIGURATION = """\
apiServer:
  certSANs:
  - localhost
  - 127.0.0.1
  extraArgs:
  - name: runtime-config
    value: ""
apiVersion: kubeadm.k8s.io/v1beta4
caCertificateValidityPeriod: 87600h0m0s
certificateValidityPeriod: 8760h0m0s
certificatesDir: /etc/kubernetes/pki
clusterName: kubernetes
controlPlaneEndpoint: {host}:6443
controllerManager:
  extraArgs:
  - name: enable-hostpath-provisioner
    value: "true"
dns: {{}}
encryptionAlgorithm: RSA-2048
etcd:
  local:
    dataDir: /var/lib/etcd
imageRepository: registry.k8s.io
kind: ClusterConfiguration
kubernetesVersion: v1.34.0
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/16
proxy: {{}}
scheduler: {{}}
"""
_REQUEST_HEADERS = {
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-username-headers": '["X-Remote-User"]',
}


def server_settings(authority: str) -> Obj:
    """The ConfigMap for extension API servers (authentication of the front proxy)."""
    trust = {"client-ca-file": authority, "requestheader-client-ca-file": authority}
    return _map("kube-system", "extension-apiserver-authentication", {**trust, **_REQUEST_HEADERS})


def token_tracking(now: str) -> Obj:
    """The start of the tracking of legacy service account tokens."""
    return _map("kube-system", "kube-apiserver-legacy-service-account-token-tracking", {"since": now[:10]})


def kubeadm_settings(host: str, encoded_authority: str) -> Iterator[Obj]:
    info = _CLUSTER_INFO.format(authority=encoded_authority, host=host)
    yield _map("kube-public", "cluster-info", {"kubeconfig": info})
    yield _map("kube-system", "kubeadm-config", {"ClusterConfiguration": _CLUSTER_CONFIGURATION.format(host=host)})
    yield _map("kube-system", "kubelet-config", {"kubelet": configuration.DEFAULT_TEXT})


def _map(namespace: str, name: str, data: dict[str, str]) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }
