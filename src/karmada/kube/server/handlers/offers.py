"""Content negotiation of resource requests: the media types that an endpoint offers, and the one that is chosen."""

from __future__ import annotations

from karmada.kube.kinds.resource import Resource
from karmada.kube.schema.wire import message_of, wire_table
from karmada.kube.server.http.negotiation import MEDIA, PLAIN, STREAMS, Form, Offer, check_produced, is_usual, negotiate
from karmada.kube.server.http.request import CONNECT_SUBRESOURCES, Request

_SHAPES = {"list": "list", "deletecollection": "list", "watch": "watch"}
_STREAMED = (*MEDIA, *STREAMS)
_TEXT = ("text/plain", *MEDIA)
_SHARED_TYPES = {"events.k8s.io": "core", "": "core"}
"""Groups whose internal Go types stand in another package than their own."""


def negotiated(request: Request, resource: Resource) -> Form | None:
    """Return the form of the response to a resource request; None for streams, which have a form of their own."""
    info = request.info
    if info.subresource in CONNECT_SUBRESOURCES:
        return None
    accept = request.headers.get("Accept", "")
    if is_usual(accept):
        return PLAIN
    if not resource.custom:
        reads_many = info.verb in ("list", "watch")
        check_produced(accept, _STREAMED if reads_many else _TEXT if info.subresource == "log" else MEDIA)
    if info.subresource == "log":
        return None
    return negotiate(accept, _offer(request, resource))


def _offer(request: Request, resource: Resource) -> Offer:
    info = request.info
    shape = _SHAPES.get(info.verb, "object")
    part = resource.subresources.get(info.subresource)
    verbs = resource.verbs if part is None else part.verbs
    return Offer(
        shape,
        protobuf=has_protobuf(resource) if part is None or part.kind is None else True,
        tables="get" in verbs,
        go_type=_go_type(resource, resource.list_kind if shape == "list" else resource.gvk.kind),
    )


def has_protobuf(resource: Resource) -> bool:
    """Return whether the kind has a protobuf message; custom resources have none."""
    return not resource.custom and message_of(resource.schema().definition) in wire_table()


def _go_type(resource: Resource, kind: str) -> str:
    """Return the internal Go type of a kind, as error messages print it."""
    if resource.custom:
        return "*unstructured.UnstructuredList" if kind == resource.list_kind else "*unstructured.Unstructured"
    group = resource.gvk.group
    return f"*{_SHARED_TYPES.get(group) or group.partition('.')[0]}.{kind}"
