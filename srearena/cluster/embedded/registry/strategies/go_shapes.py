"""The server's own structures, as it prints them in messages: under Go's names, in Go's order, nothing left out.

Most messages show a plain value. A few show a whole structure, or the difference between two, and then it is the
structure the server works with inside, whose fields carry no JSON names. The table below says for each of those
structures which fields there are in which order; `shape_of` brings a wire-shape object into that form and `diff` is
the text that follows refusals such as `pod updates may not change fields other than ...`.
"""

from __future__ import annotations

import difflib
import json
from functools import cache
from typing import Any

from srearena.cluster.embedded.objects import Obj

# A line per structure. A field is its Go name, with its wire name after `=` where that is not the same in lower case,
# and its kind after `:`: s, i and b are texts, numbers and truth values that are never null, m a map, a name is a
# nested structure, with * one that may be null and with [] a list of them. Without a kind it is shown as it is.
# `@ObjectMeta` is metadata, shown under its wire names.
_TABLE = """
Affinity -> NodeAffinity:*NodeAffinity PodAffinity:*PodAffinity PodAntiAffinity:*PodAntiAffinity
AppArmorProfile -> Type:s LocalhostProfile
CSIPersistentVolumeSource -> Driver:s VolumeHandle:s ReadOnly:b FSType=fsType:s VolumeAttributes:m
    ControllerPublishSecretRef:*SecretReference NodeStageSecretRef:*SecretReference
    NodePublishSecretRef:*SecretReference ControllerExpandSecretRef:*SecretReference
    NodeExpandSecretRef:*SecretReference
CSIVolumeSource -> Driver:s ReadOnly FSType=fsType VolumeAttributes:m
    NodePublishSecretRef:*LocalObjectReference
Capabilities -> Add Drop
ConfigMapEnvSource -> Name:s Optional
ConfigMapKeySelector -> Name:s Key:s Optional
ConfigMapProjection -> Name:s Items:[]KeyToPath Optional
ConfigMapVolumeSource -> Name:s Items:[]KeyToPath DefaultMode Optional
Container -> Name:s Image:s Command Args WorkingDir:s Ports:[]ContainerPort EnvFrom:[]EnvFromSource
    Env:[]EnvVar Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy
    RestartPolicyRules VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice LivenessProbe:*Probe
    ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath:s
    TerminationMessagePolicy:s ImagePullPolicy:s SecurityContext:*SecurityContext Stdin:b StdinOnce:b
    TTY=tty:b
ContainerPort -> Name:s HostPort:i ContainerPort:i Protocol:s HostIP:s
ContainerResizePolicy -> ResourceName:s RestartPolicy:s
CustomResourceColumnDefinition -> Name:s Type:s Format:s Description:s Priority:i JSONPath=jsonPath:s
CustomResourceDefinitionVersion -> Name:s Served:b Storage:b Deprecated:b DeprecationWarning
    Schema:*CustomResourceValidation Subresources:*CustomResourceSubresources
    AdditionalPrinterColumns:[]CustomResourceColumnDefinition SelectableFields:[]SelectableField
CustomResourceSubresourceScale -> SpecReplicasPath:s StatusReplicasPath:s LabelSelectorPath
CustomResourceSubresources -> Status:m Scale:*CustomResourceSubresourceScale
CustomResourceValidation -> OpenAPIV3Schema=openAPIV3Schema:*JSONSchemaProps
DownwardAPIProjection -> Items:[]DownwardAPIVolumeFile
DownwardAPIVolumeFile -> Path:s FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector Mode
DownwardAPIVolumeSource -> Items:[]DownwardAPIVolumeFile DefaultMode
EmptyDirVolumeSource -> Medium:s SizeLimit
EnvFromSource -> Prefix:s ConfigMapRef:*ConfigMapEnvSource SecretRef:*SecretEnvSource
EnvVar -> Name:s Value:s ValueFrom:*EnvVarSource
EnvVarSource -> FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector
    ConfigMapKeyRef:*ConfigMapKeySelector SecretKeyRef:*SecretKeySelector FileKeyRef
EphemeralContainer -> Name:s Image:s Command Args WorkingDir:s Ports:[]ContainerPort EnvFrom:[]EnvFromSource
    Env:[]EnvVar Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy
    RestartPolicyRules VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice LivenessProbe:*Probe
    ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath:s
    TerminationMessagePolicy:s ImagePullPolicy:s SecurityContext:*SecurityContext Stdin:b StdinOnce:b
    TTY=tty:b TargetContainerName:s
EphemeralVolumeSource -> VolumeClaimTemplate:*PersistentVolumeClaimTemplate
ExecAction -> Command
GRPCAction -> Port:i Service
HTTPGetAction -> Path:s Port:w Host:s Scheme:s HTTPHeaders=httpHeaders:[]HTTPHeader
HTTPHeader -> Name:s Value:s
HostAlias -> IP=ip:s Hostnames
HostPathVolumeSource -> Path:s Type
ImageVolumeSource -> Reference:s PullPolicy:s
JSONSchemaProps -> ID=id:s Schema=$schema:s Ref=$ref Description:s Type:s Nullable:b Format:s Title:s Default
    Maximum ExclusiveMaximum:b Minimum ExclusiveMinimum:b MaxLength MinLength Pattern:s MaxItems MinItems
    UniqueItems:b MultipleOf Enum MaxProperties MinProperties Required Items:*JSONSchemaPropsOrArray
    AllOf:[]JSONSchemaProps OneOf:[]JSONSchemaProps AnyOf:[]JSONSchemaProps Not:*JSONSchemaProps
    Properties:{}JSONSchemaProps AdditionalProperties:*JSONSchemaPropsOrBool PatternProperties:{}JSONSchemaProps
    Dependencies AdditionalItems:*JSONSchemaPropsOrBool Definitions:{}JSONSchemaProps ExternalDocs Example
    XPreserveUnknownFields=x-kubernetes-preserve-unknown-fields
    XEmbeddedResource=x-kubernetes-embedded-resource:b XIntOrString=x-kubernetes-int-or-string:b
    XListMapKeys=x-kubernetes-list-map-keys XListType=x-kubernetes-list-type XMapType=x-kubernetes-map-type
    XValidations=x-kubernetes-validations:[]ValidationRule
KeyToPath -> Key:s Path:s Mode
Lifecycle -> PostStart:*LifecycleHandler PreStop:*LifecycleHandler StopSignal
LifecycleHandler -> Exec:*ExecAction HTTPGet=httpGet:*HTTPGetAction TCPSocket=tcpSocket:*TCPSocketAction
    Sleep:*SleepAction
LocalObjectReference -> Name:s
LocalVolumeSource -> Path:s FSType=fsType
NFSVolumeSource -> Server:s Path:s ReadOnly:b
NodeAffinity -> RequiredDuringSchedulingIgnoredDuringExecution:*NodeSelector
    PreferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm
NodeSelector -> NodeSelectorTerms:[]NodeSelectorTerm
NodeSelectorRequirement -> Key:s Operator:s Values
NodeSelectorTerm -> MatchExpressions:[]NodeSelectorRequirement MatchFields:[]NodeSelectorRequirement
ObjectFieldSelector -> APIVersion=apiVersion:s FieldPath:s
PersistentVolumeClaimSpec -> AccessModes Selector Resources:VolumeResourceRequirements VolumeName:s
    StorageClassName VolumeMode DataSource:*TypedLocalObjectReference DataSourceRef:*TypedObjectReference
    VolumeAttributesClassName
PersistentVolumeClaimTemplate -> @ObjectMeta Spec:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource -> ClaimName:s ReadOnly:b
PersistentVolumeSource -> GCEPersistentDisk=gcePersistentDisk AWSElasticBlockStore=awsElasticBlockStore
    HostPath:*HostPathVolumeSource Glusterfs NFS=nfs:*NFSVolumeSource RBD=rbd Quobyte ISCSI=iscsi FlexVolume
    Cinder CephFS=cephfs FC=fc Flocker AzureFile VsphereVolume AzureDisk PhotonPersistentDisk PortworxVolume
    ScaleIO Local:*LocalVolumeSource StorageOS=storageos CSI=csi:*CSIPersistentVolumeSource
PodAffinity -> RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
    PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodAffinityTerm -> LabelSelector Namespaces TopologyKey:s NamespaceSelector MatchLabelKeys MismatchLabelKeys
PodAntiAffinity -> RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm
    PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodDNSConfig -> Nameservers Searches Options:[]PodDNSConfigOption
PodDNSConfigOption -> Name:s Value
PodOS -> Name:s
PodReadinessGate -> ConditionType:s
PodResourceClaim -> Name:s ResourceClaimName ResourceClaimTemplateName
PodSchedulingGate -> Name:s
PodSecurityContext -> HostNetwork:b HostPID:b HostIPC:b ShareProcessNamespace HostUsers
    SELinuxOptions=seLinuxOptions:*SELinuxOptions WindowsOptions RunAsUser RunAsGroup RunAsNonRoot
    SupplementalGroups SupplementalGroupsPolicy FSGroup=fsGroup FSGroupChangePolicy=fsGroupChangePolicy
    Sysctls:[]Sysctl SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile
    SELinuxChangePolicy=seLinuxChangePolicy
PodSpec -> Volumes:[]Volume InitContainers:[]Container Containers:[]Container
    EphemeralContainers:[]EphemeralContainer RestartPolicy:s TerminationGracePeriodSeconds
    ActiveDeadlineSeconds DNSPolicy=dnsPolicy:s NodeSelector:m ServiceAccountName:s
    AutomountServiceAccountToken NodeName:s SecurityContext:*PodSecurityContext
    ImagePullSecrets:[]LocalObjectReference Hostname:s Subdomain:s SetHostnameAsFQDN Affinity:*Affinity
    SchedulerName:s Tolerations:[]Toleration HostAliases:[]HostAlias PriorityClassName:s Priority
    PreemptionPolicy DNSConfig=dnsConfig:*PodDNSConfig ReadinessGates:[]PodReadinessGate RuntimeClassName
    Overhead:m EnableServiceLinks TopologySpreadConstraints:[]TopologySpreadConstraint OS=os:*PodOS
    SchedulingGates:[]PodSchedulingGate ResourceClaims:[]PodResourceClaim Resources:*ResourceRequirements
    HostnameOverride
PodTemplateSpec -> @ObjectMeta Spec:PodSpec
PreferredSchedulingTerm -> Weight:i Preference:NodeSelectorTerm
Probe -> Exec:*ExecAction HTTPGet=httpGet:*HTTPGetAction TCPSocket=tcpSocket:*TCPSocketAction
    GRPC=grpc:*GRPCAction InitialDelaySeconds:i TimeoutSeconds:i PeriodSeconds:i SuccessThreshold:i
    FailureThreshold:i TerminationGracePeriodSeconds
ProjectedVolumeSource -> Sources:[]VolumeProjection DefaultMode
ResourceClaim -> Name:s Request:s
ResourceFieldSelector -> ContainerName:s Resource:s Divisor:w
ResourceRequirements -> Limits:m Requests:m Claims:[]ResourceClaim
SELinuxOptions -> User:s Role:s Type:s Level:s
SeccompProfile -> Type:s LocalhostProfile
SecretEnvSource -> Name:s Optional
SecretKeySelector -> Name:s Key:s Optional
SecretProjection -> Name:s Items:[]KeyToPath Optional
SecretReference -> Name:s Namespace:s
SecretVolumeSource -> SecretName:s Items:[]KeyToPath DefaultMode Optional
SecurityContext -> Capabilities:*Capabilities Privileged SELinuxOptions=seLinuxOptions:*SELinuxOptions
    WindowsOptions RunAsUser RunAsGroup RunAsNonRoot ReadOnlyRootFilesystem AllowPrivilegeEscalation ProcMount
    SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile
SelectableField -> JSONPath=jsonPath:s
ServiceAccountTokenProjection -> Audience:s ExpirationSeconds:i Path:s
SleepAction -> Seconds:i
Sysctl -> Name:s Value:s
TCPSocketAction -> Port:w Host:s
Toleration -> Key:s Operator:s Value:s Effect:s TolerationSeconds
TopologySpreadConstraint -> MaxSkew:i TopologyKey:s WhenUnsatisfiable:s LabelSelector MinDomains
    NodeAffinityPolicy NodeTaintsPolicy MatchLabelKeys
TypedLocalObjectReference -> APIGroup=apiGroup Kind:s Name:s
TypedObjectReference -> APIGroup=apiGroup Kind:s Name:s Namespace
ValidationRule -> Rule:s Message:s MessageExpression:s Reason FieldPath:s OptionalOldSelf
Volume -> Name:s HostPath:*HostPathVolumeSource EmptyDir:*EmptyDirVolumeSource
    GCEPersistentDisk=gcePersistentDisk AWSElasticBlockStore=awsElasticBlockStore GitRepo
    Secret:*SecretVolumeSource NFS=nfs:*NFSVolumeSource ISCSI=iscsi Glusterfs
    PersistentVolumeClaim:*PersistentVolumeClaimVolumeSource RBD=rbd Quobyte FlexVolume Cinder CephFS=cephfs
    Flocker DownwardAPI:*DownwardAPIVolumeSource FC=fc AzureFile ConfigMap:*ConfigMapVolumeSource
    VsphereVolume AzureDisk PhotonPersistentDisk Projected:*ProjectedVolumeSource PortworxVolume ScaleIO
    StorageOS=storageos CSI=csi:*CSIVolumeSource Ephemeral:*EphemeralVolumeSource Image:*ImageVolumeSource
VolumeDevice -> Name:s DevicePath:s
VolumeMount -> Name:s ReadOnly:b RecursiveReadOnly MountPath:s SubPath:s MountPropagation SubPathExpr:s
VolumeProjection -> Secret:*SecretProjection DownwardAPI:*DownwardAPIProjection ConfigMap:*ConfigMapProjection
    ServiceAccountToken:*ServiceAccountTokenProjection ClusterTrustBundle PodCertificate
VolumeResourceRequirements -> Limits:m Requests:m
WeightedPodAffinityTerm -> Weight:i PodAffinityTerm:PodAffinityTerm
"""
_ZERO: dict[str, Any] = {"s": "", "i": 0, "b": False, "w": 0}
_POD_WIDE = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


@cache
def _shapes() -> dict[str, list[tuple[str, str, str]]]:
    found: dict[str, list[tuple[str, str, str]]] = {}
    for line in _TABLE.replace("\n    ", " ").strip().splitlines():
        name, _, fields = line.partition(" -> ")
        found[name] = [_field(text) for text in fields.split()]
    return found


def _field(text: str) -> tuple[str, str, str]:
    label, _, kind = text.partition(":")
    name, _, wire = label.partition("=")
    return name, wire or name[0].lower() + name[1:], kind


def shape_of(kind: str, value: Any) -> Obj:
    """A wire-shape object as the structure `kind` that the server prints."""
    if kind == "JSONSchemaPropsOrArray":
        several = isinstance(value, list)
        schemas = [shape_of("JSONSchemaProps", one) for one in (value if several else [value])]
        return {"Schema": None if several else schemas[0], "JSONSchemas": schemas if several else None}
    if kind == "JSONSchemaPropsOrBool":
        allows = value is not False
        return {"Allows": allows, "Schema": shape_of("JSONSchemaProps", value) if isinstance(value, dict) else None}
    if kind == "PodSpec":
        value = _with_pod_wide_context(value)
    printed_value: Obj = {}
    for name, wire, field_kind in _shapes()[kind]:
        if name == "@ObjectMeta":
            printed_value.update((key, _sorted(part)) for key, part in (value.get("metadata") or {}).items())
        else:
            printed_value[name] = _value(field_kind, value.get(wire))
    return printed_value


def _value(kind: str, value: Any) -> Any:
    if kind in _ZERO:
        return _ZERO[kind] if value is None else value
    if kind == "m" or not kind:
        return _sorted(value)
    if kind.startswith("[]"):
        return None if value is None else [shape_of(kind[2:], item) for item in value]
    if kind.startswith("{}"):
        return None if value is None else {key: shape_of(kind[2:], value[key]) for key in sorted(value)}
    if kind.startswith("*"):
        return None if value is None else shape_of(kind[1:], value)
    return shape_of(kind, value or {})


def _sorted(value: Any) -> Any:
    """Maps come out in the order of their keys."""
    return dict(sorted(value.items())) if isinstance(value, dict) else value


def _with_pod_wide_context(spec: Obj) -> Obj:
    """Inside the server, the namespaces a pod shares with its node belong to its security context."""
    context = {**(spec.get("securityContext") or {}), **{key: spec[key] for key in _POD_WIDE if key in spec}}
    return {**spec, "securityContext": context}


def same(kind: str, left: Obj, right: Obj) -> bool:
    """Whether two objects are the same structure: a zero is an absent value, an empty list none at all."""
    return left == right or _filled(shape_of(kind, left)) == _filled(shape_of(kind, right))


def _filled(value: Any) -> Any:
    """The value without what is null or empty in it."""
    if isinstance(value, dict):
        pairs = ((key, _filled(item)) for key, item in value.items())
        return {key: item for key, item in pairs if item not in (None, [], {})}
    return [_filled(item) for item in value] if isinstance(value, list) else value


def diff(kind: str, old: Obj, new: Obj) -> str:
    """What differs between two structures, as a unified diff of how they print."""
    before, after = (_lines(shape_of(kind, value)) for value in (old, new))
    lines = difflib.unified_diff(before, after, n=3)
    return "".join(line for line in lines if not line.startswith(("--- ", "+++ ")))


def _lines(printed_value: Obj) -> list[str]:
    text = json.dumps(printed_value, indent=1, ensure_ascii=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return [f"{line}\n" for line in text.split("\n")]
