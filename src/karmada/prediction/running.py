"""Reports of the running control plane: feature gates, settings, and what its estimators estimate."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karmada.kube.client.client import Client
    from karmada.scheduler.estimators.estimator_result import EstimatorResult
    from karmada.scheduler.request import Request

_GATE: Final = re.compile(r'kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} ([01])')
_SETTING: Final = re.compile(r'karmada_controller_setting_info\{flag="([\w-]+)",value="([^"]*)"\} 1')


class Running(NamedTuple):
    """Both empty when the caller may not read the metrics, or the controllers run elsewhere."""

    gates: dict[str, bool]
    settings: dict[str, str]
    """Values by flag."""


async def running(client: Client) -> Running:
    page = await _page(client, "/metrics", {})
    if page is None:
        return Running({}, {})
    text = page.decode(errors="replace")
    gates = {name: on == "1" for name, on in _GATE.findall(text)}
    return Running(gates, {flag: value.replace("\\\\", "\\") for flag, value in _SETTING.findall(text)})


async def estimates(client: Client, request: Request, *, sets: bool) -> list[EstimatorResult]:
    """Return what the estimators report for a workload, in every cluster; nothing for those who may not read that."""
    import orjson

    from karmada.scheduler.estimators.estimator_result import EstimatorResult
    from karmada.scheduler.service.estimates import PATH

    query = {"namespace": request.resource.get("namespace") or ""}
    if sets:
        query["components"] = orjson.dumps(request.components).decode()
    elif request.requirements is not None:
        query["requirements"] = orjson.dumps(request.requirements).decode()
    page = await _page(client, PATH, query)
    return [] if page is None else [EstimatorResult.of(one) for one in orjson.loads(page)["estimators"]]


async def _page(client: Client, path: str, query: Mapping[str, str]) -> bytes | None:
    """Return a page; None if the server has none, or the caller may not read it."""
    from karmada.kube.client.transport import Call

    transport = client.transport
    answer = await transport.answer(Call("GET", path, query, accept="text/plain, */*"))
    return answer.body if answer.status == 200 else None
