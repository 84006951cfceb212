"""The page of the API server that reports what the scheduler's estimators return for a workload.

The query has what estimates depend on: `requirements` of a replica, or `components`, as JSON, and the `namespace`.
Like every path that is not a resource it is served to those whom a role grants it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from karmada.kube.objects.errors import BadRequest
from karmada.kube.server.http.results import RawResult
from karmada.scheduler.request import Request

if TYPE_CHECKING:
    from karmada.kube.server.handlers.pipeline import PathHandler
    from karmada.kube.server.http import request as http
    from karmada.kube.server.http.results import Result
    from karmada.scheduler.service.core import SchedulingEngine

_ONE_CLUSTER = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}
"""A placement with which components are estimated in complete sets."""


def estimates_page(scheduler: SchedulingEngine) -> PathHandler:
    async def page(request: http.Request) -> Result:
        found = await scheduler.estimates(_workload(request))
        return RawResult(orjson.dumps({"estimators": [one.data for one in found]}))

    return page


def _workload(request: http.Request) -> Request:
    components = _json(request, "components", list)
    return Request(
        {
            "resource": {"namespace": request.query.get("namespace")},
            "replicas": 1,
            "replicaRequirements": _json(request, "requirements", dict),
            "components": components,
            "placement": _ONE_CLUSTER if components else {},
        }
    )


def _json(request: http.Request, name: str, kind: type) -> Any:
    text = request.query.get(name)
    if not text:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"{name}: {error}") from None
    if not isinstance(value, kind):
        raise BadRequest(f"{name}: must be a JSON {'list' if kind is list else 'object'}")
    return value
