"""Requests of the estimator service, from plain objects and back.

Karmada moves its messages from typed Kubernetes fields to their encoded form (`*Bytes`): a writer sets both, a reader
prefers the encoded one. So either side may be of any release. What is None is absent in both forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from karmada.estimator import messages
from karmada.estimator.messages import (
    GET_UNSCHEDULABLE_REPLICAS,
    MAX_AVAILABLE_COMPONENT_SETS,
    MAX_AVAILABLE_REPLICAS,
    SERVICE,
    Method,
)
from karmada.estimator.terms import Assumption, EstimateError
from karmada.kube.objects.quantity import canonical
from karmada.kube.objects.types import Obj

__all__ = [
    "GET_UNSCHEDULABLE_REPLICAS",
    "MAX_AVAILABLE_COMPONENT_SETS",
    "MAX_AVAILABLE_REPLICAS",
    "SERVICE",
    "Method",
    "ReplicasQuery",
    "SetsQuery",
    "UnschedulableQuery",
    "read_replicas",
    "read_sets",
    "read_unschedulable",
    "replicas_request",
    "sets_request",
    "unschedulable_request",
]

_NANOSECONDS = 10**9


class ReplicasQuery(NamedTuple):
    """How many more replicas; `requirements` is None when nothing is known but that they are Pods."""

    cluster: str
    requirements: Obj | None
    assumed: Sequence[Assumption] = ()


class SetsQuery(NamedTuple):
    """How many complete sets of the components."""

    cluster: str
    components: Sequence[Obj]
    namespace: str = ""
    assumed: Sequence[Assumption] = ()


class UnschedulableQuery(NamedTuple):
    """How many replicas could not be scheduled for longer than the threshold, in seconds."""

    cluster: str
    resource: Obj | None
    threshold: float


# writing


def replicas_request(query: ReplicasQuery) -> Any:
    """Return a MaxAvailableReplicasRequest. ValueError: a quantity cannot be read."""
    requirements = None if query.requirements is None else _requirements(query.requirements)
    return messages.MaxAvailableReplicasRequest(
        cluster=query.cluster, replicaRequirements=requirements, assumedWorkloads=map(_assumed, query.assumed)
    )


def sets_request(query: SetsQuery) -> Any:
    """Return a MaxAvailableComponentSetsRequest. ValueError: a quantity cannot be read."""
    return messages.MaxAvailableComponentSetsRequest(
        cluster=query.cluster,
        components=map(_component, query.components),
        namespace=query.namespace,
        assumedWorkloads=map(_assumed, query.assumed),
    )


def unschedulable_request(query: UnschedulableQuery) -> Any:
    """Return an UnschedulableReplicasRequest; the uid of the resource is not sent."""
    resource = None
    if query.resource is not None:
        names = ("apiVersion", "kind", "namespace", "name")
        resource = messages.ObjectReference(**{name: query.resource.get(name) or "" for name in names})
    return messages.UnschedulableReplicasRequest(
        cluster=query.cluster, resource=resource, unschedulableThreshold=round(query.threshold * _NANOSECONDS)
    )


def _requirements(requirements: Obj) -> Any:
    return messages.ReplicaRequirements(
        namespace=requirements.get("namespace") or "",
        priorityClassName=requirements.get("priorityClassName") or "",
        **_needs(requirements),
    )


def _component(component: Obj) -> Any:
    requirements = component.get("replicaRequirements")
    message = messages.Component(name=component.get("name") or "", replicas=component.get("replicas") or 0)
    if requirements is not None:
        named = messages.ComponentReplicaRequirements(
            priorityClassName=requirements.get("priorityClassName") or "", **_needs(requirements)
        )
        message.replicaRequirements.CopyFrom(named)
    return message


def _assumed(assumption: Assumption) -> Any:
    return messages.AssumedWorkload(namespace=assumption.namespace, components=map(_component, assumption.components))


def _needs(requirements: Obj) -> dict[str, Any]:
    """Return what requirements of replicas and of components have in common."""
    needs: dict[str, Any] = {}
    claim = requirements.get("nodeClaim")
    if claim is not None:
        needs["nodeClaim"] = _claim(claim)
    request = requirements.get("resourceRequest")
    if request:
        quantities = {name: messages.Quantity(string=canonical(value)) for name, value in request.items()}
        needs["resourceRequest"] = quantities
        needs["resourceRequestBytes"] = {name: one.SerializeToString() for name, one in quantities.items()}
    return needs


def _claim(claim: Obj) -> Any:
    affinity = claim.get("hardNodeAffinity")
    selector = None if affinity is None else messages.NodeSelector(**affinity)
    tolerations = [messages.Toleration(**one) for one in claim.get("tolerations") or ()]
    return messages.NodeClaim(
        nodeAffinity=selector,
        nodeAffinityBytes=b"" if selector is None else selector.SerializeToString(),
        nodeSelector=claim.get("nodeSelector") or {},
        tolerations=tolerations,
        tolerationsBytes=[one.SerializeToString() for one in tolerations],
    )


# reading


def read_replicas(message: Any) -> ReplicasQuery:
    """EstimateError: an encoded field is not what it must be."""
    requirements = None
    if message.HasField("replicaRequirements"):
        given = message.replicaRequirements
        requirements = _read_needs(given)
        _set(requirements, "namespace", given.namespace)
    return ReplicasQuery(message.cluster, requirements, _read_assumed(message))


def read_sets(message: Any) -> SetsQuery:
    """EstimateError: an encoded field is not what it must be."""
    components = [_read_component(component) for component in message.components]
    return SetsQuery(message.cluster, components, message.namespace, _read_assumed(message))


def read_unschedulable(message: Any) -> UnschedulableQuery:
    resource: Obj | None = None
    if message.HasField("resource"):
        resource = {}
        for name in ("apiVersion", "kind", "namespace", "name"):
            _set(resource, name, getattr(message.resource, name))
    return UnschedulableQuery(message.cluster, resource, message.unschedulableThreshold / _NANOSECONDS)


def _read_assumed(message: Any) -> list[Assumption]:
    return [
        Assumption(workload.namespace, [_read_component(component) for component in workload.components])
        for workload in message.assumedWorkloads
    ]


def _read_component(message: Any) -> Obj:
    component: Obj = {"name": message.name, "replicas": message.replicas}
    if message.HasField("replicaRequirements"):
        component["replicaRequirements"] = _read_needs(message.replicaRequirements)
    return component


def _read_needs(message: Any) -> Obj:
    needs: Obj = {}
    if message.HasField("nodeClaim"):
        needs["nodeClaim"] = _read_claim(message.nodeClaim)
    _set(needs, "resourceRequest", _read_request(message))
    _set(needs, "priorityClassName", message.priorityClassName)
    return needs


def _read_request(message: Any) -> dict[str, str]:
    encoded: Mapping[str, bytes] = message.resourceRequestBytes
    quantities: Mapping[str, Any] = message.resourceRequest
    if encoded:
        field = "resourceRequestBytes[{}]".format
        quantities = {name: _decode(messages.Quantity, field(name), data) for name, data in encoded.items()}
    return {name: _read_quantity(name, quantity.string) for name, quantity in quantities.items()}


def _read_quantity(name: str, text: str) -> str:
    """Return the error for an estimate that would be too high, as it ignores a part of the request."""
    try:
        return canonical(text)
    except ValueError as error:
        raise EstimateError(f'resourceRequest[{name}]: "{text}": {error}') from None


def _read_claim(message: Any) -> Obj:
    claim: Obj = {}
    if message.nodeAffinityBytes:
        selector = _decode(messages.NodeSelector, "nodeAffinityBytes", message.nodeAffinityBytes)
        claim["hardNodeAffinity"] = _read_selector(selector)
    elif message.HasField("nodeAffinity"):
        claim["hardNodeAffinity"] = _read_selector(message.nodeAffinity)
    _set(claim, "nodeSelector", dict(message.nodeSelector))
    tolerations: Sequence[Any] = message.tolerations
    if message.tolerationsBytes:
        tolerations = [_decode(messages.Toleration, "tolerationsBytes", data) for data in message.tolerationsBytes]
    _set(claim, "tolerations", [_read_toleration(one) for one in tolerations])
    return claim


def _read_selector(selector: Any) -> Obj:
    return {"nodeSelectorTerms": [_read_term(term) for term in selector.nodeSelectorTerms]}


def _read_term(term: Any) -> Obj:
    found: Obj = {}
    _set(found, "matchExpressions", [_read_requirement(one) for one in term.matchExpressions])
    _set(found, "matchFields", [_read_requirement(one) for one in term.matchFields])
    return found


def _read_requirement(requirement: Any) -> Obj:
    found: Obj = {"key": requirement.key, "operator": requirement.operator}
    _set(found, "values", list(requirement.values))
    return found


def _read_toleration(message: Any) -> Obj:
    toleration: Obj = {}
    for name in ("key", "operator", "value", "effect"):
        _set(toleration, name, getattr(message, name))
    if message.HasField("tolerationSeconds"):
        toleration["tolerationSeconds"] = message.tolerationSeconds
    return toleration


def _decode(kind: Callable[[], Any], field: str, data: bytes) -> Any:
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise EstimateError(f"{field}: {error}") from None
    return message


def _set(target: Obj, name: str, value: Any) -> None:
    if value:
        target[name] = value
