"""Search: objects of all members by free text, kind, cluster and namespace, from the caches of ResourceRegistries."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from karmada.dashboard.view import PageModule, Route, View
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.types import Obj

PATH: Final = "/apis/search.karmada.io/v1alpha1/search/query"
_LIMIT: Final = 100
_NOT_SERVED: Final = "This control plane serves no search: karmada-search is not installed, or is disabled."


def query_of(given: Any) -> dict[str, str]:
    """Return the query of the request, from the fields of the form; those that are empty are left out."""
    names = {"q": "q", "kind": "kind", "cluster": "cluster", "namespace": "namespace", "labels": "labelSelector"}
    return {name: given.get(field, "").strip() for field, name in names.items() if given.get(field, "").strip()}


def link_of(item: Obj) -> str:
    """Return where the dashboard shows an item; "" if nowhere."""
    return f"/pods/{item['cluster']}/{item['namespace']}/{item['name']}" if item["kind"] == "Pod" else ""


async def search(view: View) -> web.StreamResponse:
    query, answer, problem = query_of(view.query), None, ""
    if query:
        try:
            answer = await view.client.raw("GET", PATH, query={**query, "limit": str(_LIMIT)})
        except NotFound:
            problem = _NOT_SERVED
        except ApiError as error:
            problem = str(error)
    items = [(one, link_of(one)) for one in (answer or {}).get("items") or ()]
    more = bool(((answer or {}).get("metadata") or {}).get("continue"))
    data: dict[str, Any] = {"given": view.query, "searched": bool(query), "items": items, "more": more}
    data |= {"problem": problem, "answer": answer or {}}
    return view.page("search.html", title="Search", **data)


PAGE: Final = PageModule(routes=(Route("GET", "/search", search),), nav=("/search", "Search"))
