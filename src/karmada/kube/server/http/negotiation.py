"""Content negotiation: in which form a client wants its answer, and whether the endpoint has that form.

Answers are JSON, YAML or protobuf, whole, as Table or as PartialObjectMetadata. Two checks follow one another as in
kube-apiserver, each with its own text: the routing of built-in resources refuses an Accept header without any media
type that the route produces (`check_produced`); then the first clause that the endpoint can serve is chosen
(`negotiate`). Both are done before anything is written (`negotiated`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.errors import NotAcceptable
from karmada.kube.schema.wire import message_of, wire_table
from karmada.kube.server.http.request import CONNECT_SUBRESOURCES, Request

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MEDIA = (JSON, YAML, PROTOBUF)
STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
ACCEPTED = ", ".join(MEDIA)
_YAML_ALIASES = ("application/x-yaml", "text/yaml")
_TABLE, _PARTIAL, _PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
_META_GROUP, _META_VERSIONS = "meta.k8s.io", ("v1", "v1beta1")


class Form(NamedTuple):
    """`media` is JSON, YAML or protobuf; `transform` is "", Table or PartialObjectMetadata of meta.k8s.io `version`."""

    media: str = JSON
    transform: str = ""
    version: str = "v1"
    pretty: bool = False


class Offer(NamedTuple):
    """The forms of response that an endpoint has."""

    shape: str = "object"
    """object, list or watch."""
    protobuf: bool = True
    """Its kind has a protobuf message; without one, only metadata can be sent as protobuf."""
    tables: bool = True
    go_type: str = ""
    """Name of the response's type in a refusal."""


PLAIN = Form()
OBJECT = Offer()
DOCUMENT = Offer(tables=False)
USUAL = ("", JSON, "*/*")
"""Headers that accept plain JSON and prefer nothing else, so that nothing has to be looked up."""
_SHAPES = {"list": "list", "deletecollection": "list", "watch": "watch"}
_STREAMED = (*MEDIA, *STREAMS)
_TEXT = ("text/plain", *MEDIA)
_SHARED_TYPES = {"events.k8s.io": "core", "": "core"}
"""Groups whose internal Go types stand in another package than their own."""


class Clause(NamedTuple):
    media: str
    params: dict[str, str]
    quality: float


@lru_cache(maxsize=1024)
def parse_accept(header: str) -> tuple[Clause, ...]:
    """Return the clauses of an Accept header, best first; wildcards after exact types of the same quality."""
    clauses: list[Clause] = []
    for part in header.split(","):
        media, *raw = [piece.strip() for piece in part.split(";")]
        if not media:
            continue
        params = {key.strip(): value.strip() for key, _, value in (piece.partition("=") for piece in raw)}
        try:
            quality = float(params.pop("q", "1"))
        except ValueError:
            quality = 0.0
        clauses.append(Clause(media.lower(), params, quality))
    order = sorted(enumerate(clauses), key=lambda item: (-item[1].quality, "*" in item[1].media, item[0]))
    return tuple(clause for _, clause in order if clause.quality > 0)


def negotiated(request: Request, resource: Resource) -> Form | None:
    """Return the form of the response to a resource request; None for streams, which have a form of their own."""
    info = request.info
    if info.subresource in CONNECT_SUBRESOURCES:
        return None
    accept = request.headers.get("Accept", "")
    if accept in USUAL:
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


@lru_cache(maxsize=1024)
def check_produced(header: str, produced: tuple[str, ...]) -> None:
    """Refuse a request that accepts none of the media types that a route produces; parameters do not count here."""
    media = [part.partition(";")[0].strip() for part in header.split(",")]
    if header and not any(each == "*/*" or each in produced for each in media):
        message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}"
        raise NotAcceptable(message, details={})


@lru_cache(maxsize=1024)
def negotiate(header: str, offer: Offer = OBJECT) -> Form:
    """Return the form of the answer; NotAcceptable if no clause of the header can be served."""
    if not header:
        return PLAIN
    form = _chosen(header, offer)
    if form is None:
        raise NotAcceptable(f"only the following media types are accepted: {ACCEPTED}")
    if offer.shape == "watch" and form.media == YAML:
        raise NotAcceptable(f"only the following media types are accepted: {', '.join(STREAMS)}")
    if form.transform == _PARTIAL and offer.shape == "list":
        raise NotAcceptable(f"you requested {_PARTIAL}, but the requested object is a list ({offer.go_type})")
    if form.transform == _PARTIAL_LIST:
        if offer.shape != "list":
            raise NotAcceptable(
                f"you requested {_PARTIAL_LIST}, but the requested object is not a list ({offer.go_type})"
            )
        return form._replace(transform=_PARTIAL)
    return form


@lru_cache(maxsize=1024)
def negotiate_error(header: str) -> Form:
    """Return the form of a Status: an error is never hidden behind a header that cannot be served."""
    return (_chosen(header, DOCUMENT, transforms=False) if header else None) or PLAIN


def _chosen(header: str, offer: Offer, *, transforms: bool = True) -> Form | None:
    for clause in parse_accept(header):
        for media in _matching(clause.media):
            form = _form(media, clause.params, offer, transforms)
            if form is not None:
                return form
    return None


def _matching(media: str) -> tuple[str, ...]:
    if media in ("*/*", "application/*"):
        return MEDIA
    return (YAML,) if media in _YAML_ALIASES else (media,) if media in MEDIA else ()


def _form(media: str, params: dict[str, str], offer: Offer, transforms: bool) -> Form | None:
    if params.get("stream", "watch") != "watch":
        return None
    pretty = params.get("pretty") == "1"
    if not params.keys() & {"as", "g", "v"}:
        return Form(media, pretty=pretty) if offer.protobuf or media != PROTOBUF else None
    transform, version = params.get("as", ""), params.get("v", "")
    if not transforms or params.get("g") != _META_GROUP or version not in _META_VERSIONS:
        return None
    if transform == _TABLE:
        return Form(media, transform, version, pretty) if offer.tables and media != PROTOBUF else None
    return Form(media, transform, version, pretty) if transform in (_PARTIAL, _PARTIAL_LIST) else None


def wants_pretty(pretty: str, user_agent: str) -> bool:
    if pretty:
        return pretty in ("1", "true")
    return user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))
