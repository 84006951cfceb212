"""What a request below `proxying/{any}/proxy` means: the request within it, and who answers that.

The path behind `proxy` is read as the API server reads its own. Two things differ: a list stays a list when its field
selector has a name, and the deprecated paths below /watch are lists unless `watch` is set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from karmada.apiserver.forwarding import inner_target
from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.gvk import GVR
from karmada.kube.server.http.request import Query, Request, RequestInfo, parse_path

GROUP = "search.karmada.io"
_READS = frozenset({"get", "list", "watch"})
_WITHOUT_NAME = frozenset({"list", "watch", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Proxied:
    """The request behind the proxy. `path` and `query` are encoded as the client sent them."""

    request: Request
    info: RequestInfo
    path: str
    query: str

    @property
    def gvr(self) -> GVR | None:
        return self.info.gvr if self.info.is_resource else None

    @property
    def is_cached_read(self) -> bool:
        return self.info.verb in _READS and not self.info.subresource


def proxied(request: Request) -> Proxied:
    """BadRequest for dry runs, which could not be kept, and for a proxy within the proxy."""
    if request.query.all("dryRun"):
        raise BadRequest("dryRun is not supported")
    path, query = inner_target(request)
    info = inner_info(request.method, path, request.query)
    if info.group == GROUP and info.resource == "proxying" and info.subresource == "proxy":
        raise BadRequest("the path leads to the proxy itself: use one proxying/{name}/proxy")
    return Proxied(request, info, path, query)


def inner_info(method: str, path: str, query: Query) -> RequestInfo:
    info = parse_path(method, path, query)
    if not info.is_resource:
        return info
    verb = info.verb
    if verb == "watch" and not query.flag("watch"):
        verb = "list"
    name = "" if verb in _WITHOUT_NAME and query.get("fieldSelector") else info.name
    return replace(info, verb=verb, name=name)
