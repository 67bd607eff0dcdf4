"""What `kubectl get` and `-o wide` say of one object of each kind."""

from __future__ import annotations

from typing import Any

import pytest

from .shown import ago, meta, shown

TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "containers": [{"name": "app", "image": "web:1"}, {"name": "log", "image": "log:2"}],
    },
}
SELECTOR = {"matchLabels": {"tier": "front", "app": "web"}}
WIDE = {"Containers": "app,log", "Images": "web:1,log:2"}


@pytest.mark.parametrize(
    ("group", "resource", "obj", "row"),
    [
        (
            "apps",
            "deployments",
            {
                "spec": {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR},
                "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
            },
            {"Ready": "2/3", "Up-to-date": 3, "Available": 1, "Age": "5m", **WIDE, "Selector": "app=web,tier=front"},
        ),
        (
            "apps",
            "replicasets",
            {
                "spec": {
                    "replicas": 0,
                    "template": TEMPLATE,
                    "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]},
                },
                "status": {"replicas": 1},
            },
            {"Desired": 0, "Current": 1, "Ready": 0, "Age": "5m", **WIDE, "Selector": "app in (api,web)"},
        ),
        (
            "",
            "replicationcontrollers",
            {"spec": {"replicas": 2, "template": TEMPLATE, "selector": {"app": "web"}}, "status": {"replicas": 2}},
            {"Desired": 2, "Current": 2, "Ready": 0, "Age": "5m", **WIDE, "Selector": "app=web"},
        ),
        (
            "apps",
            "statefulsets",
            {"spec": {"replicas": 3, "template": TEMPLATE}, "status": {"readyReplicas": 3}},
            {"Ready": "3/3", "Age": "5m", **WIDE},
        ),
        (
            "apps",
            "daemonsets",
            {
                "spec": {"template": TEMPLATE, "selector": SELECTOR},
                "status": {
                    "desiredNumberScheduled": 4,
                    "currentNumberScheduled": 3,
                    "numberReady": 2,
                    "updatedNumberScheduled": 1,
                },
            },
            {
                "Desired": 4,
                "Current": 3,
                "Ready": 2,
                "Up-to-date": 1,
                "Available": 0,
                "Node Selector": "disk=ssd",
                "Age": "5m",
                **WIDE,
                "Selector": "app=web,tier=front",
            },
        ),
        (
            "apps",
            "controllerrevisions",
            {
                "metadata": meta(
                    ownerReferences=[
                        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True},
                    ]
                ),
                "revision": 7,
            },
            {"Controller": "statefulset.apps/db", "Revision": 7, "Age": "5m"},
        ),
        (
            "",
            "podtemplates",
            {"template": TEMPLATE},
            {**WIDE, "Pod Labels": "app=web"},
        ),
        (
            "autoscaling",
            "scales",
            {"spec": {"replicas": 3}, "status": {"replicas": 2}},
            {"Desired": 3, "Available": 2, "Age": "5m"},
        ),
        (
            "batch",
            "cronjobs",
            {
                "spec": {
                    "schedule": "*/5 * * * *",
                    "suspend": False,
                    "jobTemplate": {"spec": {"template": TEMPLATE}},
                },
                "status": {"active": [{}], "lastScheduleTime": ago(90)},
            },
            {
                "Schedule": "*/5 * * * *",
                "Timezone": "<none>",
                "Suspend": "False",
                "Active": 1,
                "Last Schedule": "90s",
                "Age": "5m",
                **WIDE,
                "Selector": "<none>",
            },
        ),
        (
            "",
            "services",
            {
                "spec": {
                    "type": "NodePort",
                    "clusterIP": "10.96.0.7",
                    "clusterIPs": ["10.96.0.7"],
                    "selector": {"app": "web"},
                    "ports": [
                        {"port": 80, "nodePort": 30080, "protocol": "TCP"},
                        {"port": 53, "protocol": "UDP"},
                    ],
                }
            },
            {
                "Type": "NodePort",
                "Cluster-IP": "10.96.0.7",
                "External-IP": "<none>",
                "Port(s)": "80:30080/TCP,53/UDP",
                "Age": "5m",
                "Selector": "app=web",
            },
        ),
        (
            "",
            "endpoints",
            {
                "subsets": [
                    {
                        "addresses": [{"ip": f"10.0.0.{n}"} for n in range(1, 4)],
                        "ports": [{"port": 80}, {"port": 443}],
                    }
                ]
            },
            {"Endpoints": "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 3 more...", "Age": "5m"},
        ),
        (
            "discovery.k8s.io",
            "endpointslices",
            {
                "addressType": "IPv4",
                "ports": [{"port": 80}, {"name": "http"}, {}],
                "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}],
            },
            {"AddressType": "IPv4", "Ports": "80,http,*", "Endpoints": "10.0.0.1,10.0.0.2", "Age": "5m"},
        ),
        (
            "networking.k8s.io",
            "ingresses",
            {
                "spec": {
                    "ingressClassName": "nginx",
                    "rules": [{"host": h} for h in ("a.io", "b.io", "c.io", "d.io", "e.io")],
                    "tls": [{}],
                },
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}, {"hostname": "lb.io"}]}},
            },
            {
                "Class": "nginx",
                "Hosts": "a.io,b.io,c.io + 2 more...",
                "Address": "192.0.2.9,lb.io",
                "Ports": "80, 443",
                "Age": "5m",
            },
        ),
        (
            "networking.k8s.io",
            "ingressclasses",
            {
                "spec": {
                    "controller": "k8s.io/ingress-nginx",
                    "parameters": {"apiGroup": "k8s.example.com", "kind": "IngressParameters", "name": "external"},
                }
            },
            {
                "Controller": "k8s.io/ingress-nginx",
                "Parameters": "IngressParameters.k8s.example.com/external",
                "Age": "5m",
            },
        ),
        (
            "networking.k8s.io",
            "networkpolicies",
            {"spec": {"podSelector": {}}},
            {"Pod-Selector": "<none>", "Age": "5m"},
        ),
        (
            "networking.k8s.io",
            "ipaddresses",
            {"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "kubernetes"}}},
            {"ParentRef": "services/default/kubernetes"},
        ),
        (
            "networking.k8s.io",
            "servicecidrs",
            {"spec": {"cidrs": ["10.96.0.0/16", "fd00::/112"]}},
            {"CIDRs": "10.96.0.0/16,fd00::/112", "Age": "5m"},
        ),
        ("", "namespaces", {"status": {"phase": "Active"}}, {"Status": "Active", "Age": "5m"}),
        (
            "",
            "nodes",
            {
                "metadata": meta(labels={"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "edge"}),
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "addresses": [
                        {"type": "Hostname", "address": "n"},
                        {"type": "InternalIP", "address": "172.18.0.2"},
                    ],
                    "nodeInfo": {
                        "kubeletVersion": "v1.34.0",
                        "osImage": "Debian GNU/Linux 12 (bookworm)",
                        "kernelVersion": "6.8.0",
                        "containerRuntimeVersion": "containerd://2.1.3",
                    },
                },
            },
            {
                "Status": "Ready,SchedulingDisabled",
                "Roles": "control-plane,edge",
                "Age": "5m",
                "Version": "v1.34.0",
                "Internal-IP": "172.18.0.2",
                "External-IP": "<none>",
                "OS-Image": "Debian GNU/Linux 12 (bookworm)",
                "Kernel-Version": "6.8.0",
                "Container-Runtime": "containerd://2.1.3",
            },
        ),
        ("", "secrets", {"type": "Opaque", "data": {"a": "", "b": ""}}, {"Type": "Opaque", "Data": 2, "Age": "5m"}),
        ("", "configmaps", {"data": {"a": ""}, "binaryData": {"b": ""}}, {"Data": 2, "Age": "5m"}),
        ("", "serviceaccounts", {}, {"Secrets": 0, "Age": "5m"}),
        (
            "",
            "componentstatuses",
            {"conditions": [{"type": "Healthy", "status": "False", "message": "m", "error": "e"}]},
            {"Status": "Unhealthy", "Message": "m", "Error": "e"},
        ),
        (
            "",
            "resourcequotas",
            {
                "status": {
                    "hard": {"pods": "10", "requests.cpu": "4", "limits.memory": "8Gi"},
                    "used": {"pods": "3", "requests.cpu": "1500m"},
                }
            },
            {"Request": "pods: 3/10, requests.cpu: 1500m/4", "Limit": "limits.memory: 0/8Gi", "Age": "5m"},
        ),
        (
            "",
            "persistentvolumes",
            {
                "spec": {
                    "capacity": {"storage": "1024Mi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "shop", "name": "data"},
                    "storageClassName": "standard",
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Bound"},
            },
            {
                "Capacity": "1Gi",
                "Access Modes": "RWO,RWX",
                "Reclaim Policy": "Retain",
                "Status": "Bound",
                "Claim": "shop/data",
                "StorageClass": "standard",
                "VolumeAttributesClass": "<unset>",
                "Reason": "",
                "Age": "5m",
                "VolumeMode": "Filesystem",
            },
        ),
        (
            "",
            "persistentvolumeclaims",
            {
                "spec": {"volumeName": "pvc-1", "storageClassName": "standard", "volumeMode": "Filesystem"},
                "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOncePod"]},
            },
            {
                "Status": "Bound",
                "Volume": "pvc-1",
                "Capacity": "1Gi",
                "Access Modes": "RWOP",
                "StorageClass": "standard",
                "VolumeAttributesClass": "<unset>",
                "Age": "5m",
                "VolumeMode": "Filesystem",
            },
        ),
        (
            "storage.k8s.io",
            "volumeattachments",
            {
                "spec": {"attacher": "ebs", "source": {"persistentVolumeName": "pv"}, "nodeName": "n"},
                "status": {"attached": True},
            },
            {"Attacher": "ebs", "PV": "pv", "Node": "n", "Attached": True, "Age": "5m"},
        ),
        ("storage.k8s.io", "csinodes", {"spec": {"drivers": [{}, {}]}}, {"Drivers": 2, "Age": "5m"}),
        (
            "storage.k8s.io",
            "csidrivers",
            {"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "b"}], "volumeLifecycleModes": ["Persistent"]}},
            {
                "AttachRequired": True,
                "PodInfoOnMount": False,
                "StorageCapacity": False,
                "TokenRequests": "a,b",
                "RequiresRepublish": False,
                "Modes": "Persistent",
                "Age": "5m",
            },
        ),
        (
            "storage.k8s.io",
            "csistoragecapacities",
            {"storageClassName": "fast", "capacity": "2048Gi"},
            {"StorageClassName": "fast", "Capacity": "2Ti"},
        ),
        (
            "policy",
            "poddisruptionbudgets",
            {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}},
            {"Min Available": "50%", "Max Unavailable": "N/A", "Allowed Disruptions": 1, "Age": "5m"},
        ),
        (
            "scheduling.k8s.io",
            "priorityclasses",
            {"value": 2000000000, "preemptionPolicy": "PreemptLowerPriority"},
            {
                "Value": 2000000000,
                "Global-Default": False,
                "Age": "5m",
                "PreemptionPolicy": "PreemptLowerPriority",
            },
        ),
        ("node.k8s.io", "runtimeclasses", {"handler": "runsc"}, {"Handler": "runsc", "Age": "5m"}),
        (
            "coordination.k8s.io",
            "leases",
            {"spec": {"holderIdentity": "node-1"}},
            {"Holder": "node-1", "Age": "5m"},
        ),
        (
            "resource.k8s.io",
            "resourceclaims",
            {"status": {"allocation": {}, "reservedFor": [{}]}},
            {"State": "allocated,reserved", "Age": "5m"},
        ),
        (
            "resource.k8s.io",
            "resourceslices",
            {"spec": {"nodeName": "n", "driver": "gpu", "pool": {"name": "p"}}},
            {"Node": "n", "Driver": "gpu", "Pool": "p", "Age": "5m"},
        ),
        (
            "rbac.authorization.k8s.io",
            "rolebindings",
            {
                "roleRef": {"kind": "Role", "name": "reader"},
                "subjects": [
                    {"kind": "User", "name": "ann"},
                    {"kind": "User", "name": "bob"},
                    {"kind": "Group", "name": "sre"},
                    {"kind": "ServiceAccount", "namespace": "shop", "name": "cart"},
                ],
            },
            {"Role": "Role/reader", "Age": "5m", "Users": "ann, bob", "Groups": "sre", "ServiceAccounts": "shop/cart"},
        ),
        (
            "certificates.k8s.io",
            "certificatesigningrequests",
            {
                "spec": {"signerName": "example.com/s", "username": "ann", "expirationSeconds": 86400 * 3},
                "status": {"conditions": [{"type": "Approved"}], "certificate": "LS0t"},
            },
            {
                "Age": "5m",
                "SignerName": "example.com/s",
                "Requestor": "ann",
                "RequestedDuration": "3d",
                "Condition": "Approved,Issued",
            },
        ),
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
            {"webhooks": [{}, {}]},
            {"Webhooks": 2, "Age": "5m"},
        ),
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicies",
            {"spec": {"validations": [{}], "paramKind": {"apiVersion": "rules.example.com/v1", "kind": "Limit"}}},
            {"Validations": 1, "ParamKind": "rules.example.com/v1/Limit", "Age": "5m"},
        ),
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicybindings",
            {"spec": {"policyName": "p", "paramRef": {"name": "limit"}}},
            {"PolicyName": "p", "ParamRef": "*/limit", "Age": "5m"},
        ),
        (
            "flowcontrol.apiserver.k8s.io",
            "flowschemas",
            {
                "spec": {
                    "priorityLevelConfiguration": {"name": "exempt"},
                    "matchingPrecedence": 1,
                    "distinguisherMethod": {"type": "ByUser"},
                },
                "status": {"conditions": [{"type": "Dangling", "status": "False"}]},
            },
            {
                "PriorityLevel": "exempt",
                "MatchingPrecedence": 1,
                "DistinguisherMethod": "ByUser",
                "Age": "5m",
                "MissingPL": "False",
            },
        ),
        (
            "flowcontrol.apiserver.k8s.io",
            "prioritylevelconfigurations",
            {
                "spec": {
                    "type": "Limited",
                    "limited": {
                        "nominalConcurrencyShares": 30,
                        "limitResponse": {"queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50}},
                    },
                }
            },
            {
                "Type": "Limited",
                "NominalConcurrencyShares": 30,
                "Queues": 64,
                "HandSize": 6,
                "QueueLengthLimit": 50,
                "Age": "5m",
            },
        ),
        (
            "apiregistration.k8s.io",
            "apiservices",
            {
                "spec": {"service": {"namespace": "kube-system", "name": "metrics-server"}},
                "status": {"conditions": [{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]},
            },
            {"Service": "kube-system/metrics-server", "Available": "False (MissingEndpoints)", "Age": "5m"},
        ),
        ("rbac.authorization.k8s.io", "clusterroles", {}, {"Created At": ago(300)}),
        ("apiextensions.k8s.io", "customresourcedefinitions", {}, {"Created At": ago(300)}),
        ("", "limitranges", {}, {"Created At": ago(300)}),
        ("somewhere.else", "things", {}, {"Created At": ago(300)}),
    ],
)
def test_a_row(group: str, resource: str, obj: dict[str, Any], row: dict[str, Any]) -> None:
    found = shown(group, resource, {"metadata": meta(), **obj})
    assert list(found.items()) == [("Name", "web"), *row.items()]


@pytest.mark.parametrize(
    ("spec", "status", "address"),
    [
        ({"type": "ClusterIP", "clusterIPs": ["None"]}, {}, ("None", "<none>")),
        ({"type": "ClusterIP", "externalIPs": ["1.2.3.4", "5.6.7.8"]}, {}, ("<none>", "1.2.3.4,5.6.7.8")),
        ({"type": "LoadBalancer", "clusterIPs": ["10.96.0.1"]}, {}, ("10.96.0.1", "<pending>")),
        (
            {"type": "LoadBalancer", "clusterIPs": ["10.96.0.1"], "externalIPs": ["1.2.3.4"]},
            {"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}]}},
            ("10.96.0.1", "lb.example.com,1.2.3.4"),
        ),
        ({"type": "ExternalName", "externalName": "db.example.com"}, {}, ("<none>", "db.example.com")),
        ({"type": "Mystery"}, {}, ("<none>", "<unknown>")),
    ],
)
def test_the_addresses_of_a_service(spec: dict[str, Any], status: dict[str, Any], address: tuple[str, str]) -> None:
    row = shown("", "services", {"metadata": meta(), "spec": spec, "status": status})
    assert (row["Cluster-IP"], row["External-IP"]) == address
    assert row["Port(s)"] == "<none>"


@pytest.mark.parametrize(
    ("subsets", "line"),
    [
        ([], "<none>"),
        ([{"notReadyAddresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}], ""),
        ([{"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}], "10.0.0.1,10.0.0.2"),
        ([{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}], "[fd00::1]:80"),
    ],
)
def test_endpoints(subsets: list[Any], line: str) -> None:
    assert shown("", "endpoints", {"metadata": meta(), "subsets": subsets})["Endpoints"] == line


@pytest.mark.parametrize(
    ("conditions", "unschedulable", "status"),
    [
        ([{"type": "Ready", "status": "True"}], False, "Ready"),
        ([{"type": "Ready", "status": "False"}], False, "NotReady"),
        ([{"type": "Ready", "status": "Unknown"}], True, "NotReady,SchedulingDisabled"),
        ([], False, "Unknown"),
    ],
)
def test_the_status_of_a_node(conditions: list[Any], unschedulable: bool, status: str) -> None:
    node = {"metadata": meta(), "spec": {"unschedulable": unschedulable}, "status": {"conditions": conditions}}
    row = shown("", "nodes", node)
    assert (row["Status"], row["Roles"], row["OS-Image"]) == (status, "<none>", "<unknown>")


@pytest.mark.parametrize(
    ("spec", "status", "line"),
    [
        ({"completions": 3}, {"succeeded": 1, "startTime": ago(65)}, ("Running", "1/3", "65s")),
        ({}, {"startTime": ago(65)}, ("Running", "0/1", "65s")),
        ({"parallelism": 4}, {}, ("Running", "0/1 of 4", "")),
        (
            {"completions": 1},
            {
                "succeeded": 1,
                "startTime": ago(600),
                "completionTime": ago(470),
                "conditions": [
                    {"type": "SuccessCriteriaMet", "status": "True"},
                    {"type": "Complete", "status": "True"},
                ],
            },
            ("Complete", "1/1", "2m10s"),
        ),
        (
            {"completions": 1},
            {"conditions": [{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}]},
            ("Failed", "0/1", ""),
        ),
        (
            {"completions": 1},
            {"conditions": [{"type": "FailureTarget", "status": "True"}]},
            ("FailureTarget", "0/1", ""),
        ),
        ({"completions": 1}, {"conditions": [{"type": "Suspended", "status": "True"}]}, ("Suspended", "0/1", "")),
        ({"completions": 1}, {"conditions": [{"type": "Suspended", "status": "False"}]}, ("Running", "0/1", "")),
    ],
)
def test_the_progress_of_a_job(spec: dict[str, Any], status: dict[str, Any], line: tuple[str, str, str]) -> None:
    row = shown("batch", "jobs", {"metadata": meta(), "spec": spec, "status": status})
    assert (row["Status"], row["Completions"], row["Duration"]) == line


def test_a_deleted_job_is_terminating_unless_it_is_over() -> None:
    job = {
        "metadata": meta(deletionTimestamp=ago(1)),
        "status": {"conditions": [{"type": "Suspended", "status": "True"}]},
    }
    assert shown("batch", "jobs", job)["Status"] == "Terminating"


def test_claims_show_nothing_of_a_volume_they_do_not_have() -> None:
    claim = {
        "metadata": meta(),
        "spec": {"resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    }
    row = shown("", "persistentvolumeclaims", claim)
    assert (row["Status"], row["Volume"], row["Capacity"], row["Access Modes"]) == ("Pending", "", "", "")
    assert (row["StorageClass"], row["VolumeMode"]) == ("", "<unset>")
    claim["metadata"] = meta(deletionTimestamp=ago(1), annotations={"volume.beta.kubernetes.io/storage-class": "old"})
    row = shown("", "persistentvolumeclaims", claim)
    assert (row["Status"], row["StorageClass"]) == ("Terminating", "old")


def test_the_default_storage_class_says_so() -> None:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    obj = {"metadata": meta("standard", annotations=annotations), "provisioner": "rancher.io/local-path"}
    assert shown("storage.k8s.io", "storageclasses", obj) == {
        "Name": "standard (default)",
        "Provisioner": "rancher.io/local-path",
        "ReclaimPolicy": "Delete",
        "VolumeBindingMode": "Immediate",
        "AllowVolumeExpansion": False,
        "Age": "5m",
    }


def cpu(**target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def cpu_now(**current: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", "current": current}}


@pytest.mark.parametrize(
    ("spec", "status", "targets"),
    [
        ({}, {}, "<none>"),
        (
            {"metrics": [cpu(averageUtilization=60)]},
            {"currentMetrics": [cpu_now(averageUtilization=10)]},
            "cpu: 10%/60%",
        ),
        ({"metrics": [cpu(averageUtilization=60)]}, {}, "cpu: <unknown>/60%"),
        ({"metrics": [cpu(averageValue="0.5")]}, {"currentMetrics": [cpu_now(averageValue="250m")]}, "cpu: 250m/500m"),
        ({"metrics": [cpu()]}, {}, "cpu: <unknown>/<auto>"),
        (
            {"metrics": [{"type": "Pods", "pods": {"target": {"averageValue": "1k"}}}]},
            {"currentMetrics": [{"type": "Pods", "pods": {"current": {"averageValue": "1500"}}}]},
            "1500/1k",
        ),
        (
            {"metrics": [{"type": "External", "external": {"target": {"averageValue": "30"}}}]},
            {},
            "<unknown>/30 (avg)",
        ),
        (
            {"metrics": [{"type": "Object", "object": {"target": {"value": "10k"}}}]},
            {"currentMetrics": [{"type": "Object", "object": {"current": {"value": "9k"}}}]},
            "9k/10k",
        ),
        (
            {"metrics": [cpu(averageUtilization=60), {"type": "Odd"}, cpu(averageUtilization=1), cpu()]},
            {},
            "cpu: <unknown>/60%, <unknown type> + 2 more...",
        ),
        ({"targetCPUUtilizationPercentage": 80}, {"currentCPUUtilizationPercentage": 25}, "cpu: 25%/80%"),
    ],
)
def test_the_targets_of_an_autoscaler(spec: dict[str, Any], status: dict[str, Any], targets: str) -> None:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 2, "maxReplicas": 5, **spec}
    obj = {"metadata": meta(), "spec": spec, "status": {"currentReplicas": 3, **status}}
    assert shown("autoscaling", "horizontalpodautoscalers", obj) == {
        "Name": "web",
        "Reference": "Deployment/web",
        "Targets": targets,
        "MinPods": "2",
        "MaxPods": 5,
        "Replicas": 3,
        "Age": "5m",
    }


EVENT = {
    "Last Seen": "20s",
    "Type": "Warning",
    "Reason": "BackOff",
    "Object": "pod/web-1",
    "Subobject": "spec.containers{app}",
    "Source": "kubelet, worker-1",
    "Message": "Back-off restarting failed container",
    "First Seen": "4m30s",
    "Count": 7,
    "Name": "web-1.17",
}


def test_an_event_reads_the_same_through_both_apis() -> None:
    target = {"kind": "Pod", "name": "web-1", "fieldPath": "spec.containers{app}"}
    core = {
        "metadata": {"name": "web-1.17"},
        "type": "Warning",
        "reason": "BackOff",
        "message": "Back-off restarting failed container\n",
        "involvedObject": target,
        "source": {"component": "kubelet", "host": "worker-1"},
        "firstTimestamp": ago(270),
        "lastTimestamp": ago(20),
        "count": 7,
    }
    newer = {
        "metadata": {"name": "web-1.17"},
        "type": "Warning",
        "reason": "BackOff",
        "note": "Back-off restarting failed container",
        "regarding": target,
        "reportingController": "kubelet",
        "reportingInstance": "worker-1",
        "eventTime": ago(270),
        "series": {"count": 7, "lastObservedTime": ago(20)},
    }
    assert shown("", "events", core) == EVENT
    assert shown("events.k8s.io", "events", newer) == EVENT


def test_a_single_event_counts_once_and_was_last_seen_when_it_was_first() -> None:
    row = shown("", "events", {"metadata": {"name": "e"}, "eventTime": ago(15), "involvedObject": {"kind": "Node"}})
    assert (row["Last Seen"], row["First Seen"], row["Count"], row["Object"]) == ("15s", "15s", 1, "node")
    assert shown("", "events", {})["Last Seen"] == "<unknown>"


def test_usage_of_nodes_and_pods_shows_what_is_measured() -> None:
    node = {"metadata": meta("n"), "usage": {"memory": "1024Mi", "cpu": "250m"}, "window": "20s"}
    assert shown("metrics.k8s.io", "nodes", node) == {"Name": "n", "cpu": "250m", "memory": "1Gi", "Window": "20s"}
    pod = {
        "metadata": meta("p"),
        "window": "1m30s",
        "containers": [{"usage": {"cpu": "10m", "memory": "20Mi"}}, {"usage": {"cpu": "5m", "memory": "12Mi"}}],
    }
    assert shown("metrics.k8s.io", "pods", pod) == {"Name": "p", "cpu": "15m", "memory": "32Mi", "Window": "1m30s"}
