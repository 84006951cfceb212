"""The messages of Karmada's estimator service, by number; `contract` converts them from and to plain objects."""

from __future__ import annotations

from typing import Any, NamedTuple

from karmada.kube.client.protobuf_messages import compile_messages

SERVICE = "github.com.karmada_io.karmada.pkg.estimator.service.Estimator"
_PACKAGE = "github.com.karmada_io.karmada.pkg.estimator.pb"
_TABLE = {
    "MaxAvailableReplicasRequest": (
        "string cluster 1, ReplicaRequirements replicaRequirements 2, AssumedWorkload* assumedWorkloads 3"
    ),
    "MaxAvailableReplicasResponse": "int32 maxReplicas 1",
    "MaxAvailableComponentSetsRequest": (
        "string cluster 1, Component* components 2, string namespace 3, AssumedWorkload* assumedWorkloads 4"
    ),
    "MaxAvailableComponentSetsResponse": "int32 maxSets 1",
    "UnschedulableReplicasRequest": "string cluster 1, ObjectReference resource 2, int64 unschedulableThreshold 3",
    "UnschedulableReplicasResponse": "int32 unschedulableReplicas 1",
    "ReplicaRequirements": (
        "NodeClaim nodeClaim 1, map<string,Quantity> resourceRequest 2, string namespace 3, "
        "string priorityClassName 4, map<string,bytes> resourceRequestBytes 5"
    ),
    "ComponentReplicaRequirements": (
        "NodeClaim nodeClaim 1, map<string,Quantity> resourceRequest 2, string priorityClassName 3, "
        "map<string,bytes> resourceRequestBytes 4"
    ),
    "Component": "string name 1, ComponentReplicaRequirements replicaRequirements 2, int32 replicas 3",
    "AssumedWorkload": "string namespace 1, Component* components 2",
    "NodeClaim": (
        "NodeSelector nodeAffinity 1, map<string,string> nodeSelector 2, Toleration* tolerations 3, "
        "bytes nodeAffinityBytes 4, bytes* tolerationsBytes 5"
    ),
    "ObjectReference": "string apiVersion 1, string kind 2, string namespace 3, string name 4",
    "Quantity": "string string 1",
    "NodeSelector": "NodeSelectorTerm* nodeSelectorTerms 1",
    "NodeSelectorTerm": "NodeSelectorRequirement* matchExpressions 1, NodeSelectorRequirement* matchFields 2",
    "NodeSelectorRequirement": "string key 1, string operator 2, string* values 3",
    "Toleration": "string key 1, string operator 2, string value 3, string effect 4, int64? tolerationSeconds 5",
}

_classes = compile_messages(_PACKAGE, _TABLE)
MaxAvailableReplicasRequest: Any = _classes["MaxAvailableReplicasRequest"]
MaxAvailableReplicasResponse: Any = _classes["MaxAvailableReplicasResponse"]
MaxAvailableComponentSetsRequest: Any = _classes["MaxAvailableComponentSetsRequest"]
MaxAvailableComponentSetsResponse: Any = _classes["MaxAvailableComponentSetsResponse"]
UnschedulableReplicasRequest: Any = _classes["UnschedulableReplicasRequest"]
UnschedulableReplicasResponse: Any = _classes["UnschedulableReplicasResponse"]
ReplicaRequirements: Any = _classes["ReplicaRequirements"]
ComponentReplicaRequirements: Any = _classes["ComponentReplicaRequirements"]
Component: Any = _classes["Component"]
AssumedWorkload: Any = _classes["AssumedWorkload"]
NodeClaim: Any = _classes["NodeClaim"]
ObjectReference: Any = _classes["ObjectReference"]
Quantity: Any = _classes["Quantity"]
NodeSelector: Any = _classes["NodeSelector"]
Toleration: Any = _classes["Toleration"]


class Method(NamedTuple):
    """A remote procedure with its messages; `field` is the number in the response."""

    name: str
    request: Any
    response: Any
    field: str

    @property
    def path(self) -> str:
        return f"/{SERVICE}/{self.name}"


MAX_AVAILABLE_REPLICAS = Method(
    "MaxAvailableReplicas", MaxAvailableReplicasRequest, MaxAvailableReplicasResponse, "maxReplicas"
)
MAX_AVAILABLE_COMPONENT_SETS = Method(
    "MaxAvailableComponentSets", MaxAvailableComponentSetsRequest, MaxAvailableComponentSetsResponse, "maxSets"
)
GET_UNSCHEDULABLE_REPLICAS = Method(
    "GetUnschedulableReplicas",
    UnschedulableReplicasRequest,
    UnschedulableReplicasResponse,
    "unschedulableReplicas",
)
