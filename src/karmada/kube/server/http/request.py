"""A request, as the handler chain sees it, and what its path means.

`parse_path` turns a URL path into a RequestInfo: which resource, which object, which verb. It knows nothing of what
is served; the same parse decides authorisation and routing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

from karmada.kube.objects.gvk import GVR, GroupResource
from karmada.kube.objects.selectors import parse_fields
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.warnings import Warnings

if TYPE_CHECKING:
    from karmada.kube.server.flowcontrol.control import Seat
    from karmada.kube.server.http.negotiation import Form

_WRITE_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SHORT = 128
"""Characters of a query that may be kept."""
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
CONNECT_SUBRESOURCES = frozenset({"exec", "attach", "portforward", "proxy"})


@dataclass(slots=True)
class RequestInfo:
    """`verb` is a Kubernetes verb for resources and the lower-case method otherwise."""

    is_resource: bool
    verb: str
    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """Path after the subresource (behind proxy/)."""

    @property
    def gvr(self) -> GVR:
        return GVR(self.group, self.version, self.resource)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)


class Query:
    """Query parameters; the first value of a repeated one counts, except where all are read."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, list[str]]) -> None:
        self._values = values

    @classmethod
    def parse(cls, text: str) -> Query:
        """Clients repeat short queries (which field manager, which time-out) with every request: they are kept."""
        if not text:
            return EMPTY_QUERY
        return _short_query(text) if len(text) <= _SHORT else cls(parse_qs(text, keep_blank_values=True))

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Query:
        return cls({key: [value] for key, value in values.items()}) if values else EMPTY_QUERY

    def get(self, key: str, default: str = "") -> str:
        values = self._values.get(key)
        return values[0] if values else default

    def all(self, key: str) -> list[str]:
        return self._values.get(key, [])

    def flag(self, key: str) -> bool:
        """Present and neither false nor 0, as Kubernetes reads booleans in queries."""
        values = self._values.get(key)
        return values is not None and bool(values) and values[0] not in ("false", "0")

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __bool__(self) -> bool:
        return bool(self._values)

    def items(self) -> list[tuple[str, str]]:
        return [(key, value) for key, values in self._values.items() for value in values]


EMPTY_QUERY = Query({})


@lru_cache(maxsize=1024)
def _short_query(text: str) -> Query:
    return Query(parse_qs(text, keep_blank_values=True))


@dataclass(slots=True, eq=False)
class Request:
    method: str
    info: RequestInfo
    query: Query
    headers: Mapping[str, str]
    user: User
    body: bytes = b""
    obj: Any = None
    """The body of an in-process request, already parsed; the handlers copy before they change it."""
    new_first: bool = False
    """True for an in-process list that is parsed one by one, new objects first: see Call."""
    raw: Any = None
    """The HTTP front's own request, for handlers that take over the connection (upgrades, proxying)."""
    in_process: bool = True
    """False for a request over HTTP."""
    warnings: Warnings = field(default_factory=Warnings)
    long_running: bool = False
    seat: Seat | None = None
    """Classification by flow control; None where nothing limits it."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations that admission adds to the audit event."""
    authorized: bool = False
    namespace: str = ""
    """Namespace of the objects, once the request was routed; none for a cluster-scoped kind."""
    form: Form | None = None
    """In which form the answer is sent, once that is negotiated."""
    live_bytes: int = 0
    """The size of the live object that a write changes, once it is read."""
    takes_long: bool | None = None
    """Whether the work on what was sent may take long, once that is known (see handlers/aside)."""

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def parse_path(method: str, path: str, query: Query) -> RequestInfo:
    """Decode a path, then split it, as every Kubernetes server does: behind a proxy all must read the same."""
    parts = (unquote(path) if "%" in path else path).strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(False, method.lower(), path)
    watching = rest[0] == "watch" and len(rest) > 1
    if watching:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and (rest[2] not in _NAMESPACE_SUBRESOURCES or len(rest) > 3):
            rest = rest[2:]
    resource, name = rest[0], rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    verb = _verb(method, query, name, subresource, watching)
    if verb in ("list", "watch", "deletecollection") and not name:
        name = _selected_name(query.get("fieldSelector"))
    behind = "/".join(rest[3:]) + ("/" if len(rest) > 3 and path.endswith("/") else "")
    return RequestInfo(True, verb, path, group, version, namespace, resource, name, subresource, behind)


def _verb(method: str, query: Query, name: str, subresource: str, watching: bool) -> str:
    if method in ("GET", "HEAD"):
        if subresource in CONNECT_SUBRESOURCES:
            return "get"
        if watching or (query.flag("watch") and not name):
            return "watch"
        return "get" if name else "list"
    if method == "DELETE" and not name:
        return "deletecollection"
    return _WRITE_VERBS.get(method, method.lower())


def _selected_name(field_selector: str) -> str:
    """Return the name that a list selects: it is authorised as that object, read by the parser that selects."""
    if not field_selector:
        return ""
    try:
        return parse_fields(field_selector).exact("metadata.name") or ""
    except ValueError:
        return ""
