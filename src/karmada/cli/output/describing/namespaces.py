"""Namespaces with their ResourceQuotas and LimitRanges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.cli.output.describing.sheet import UNSET, Sheet
from karmada.cli.output.describing.words import at, conditions, marks, meta, moment, names

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_SCOPES = {
    "Terminating": "Matches all pods that have an active deadline. These pods have a limited lifespan on a node before "
    "being actively terminated by the system.",
    "NotTerminating": "Matches all pods that do not have an active deadline. These pods usually include long running "
    "pods whose container command is not expected to terminate.",
    "BestEffort": "Matches all pods that do not have resource requirements set. These pods have a best effort quality "
    "of service.",
    "NotBestEffort": "Matches all pods that have at least one resource requirement set. These pods have a burstable or "
    "guaranteed quality of service.",
}
_LIMIT_KINDS = ("min", "max", "defaultRequest", "default", "maxLimitRequestRatio")
_LIMIT_TITLES = ("Type", "Resource", "Min", "Max", "Default Request", "Default Limit", "Max Limit/Request Ratio")


async def namespace(sheet: Sheet, obj: Obj, around: Around) -> None:
    name = meta(obj, "name")
    quotas = await around.if_allowed("resourcequotas.v1", name)
    limits = await around.if_allowed("limitranges.v1", name)
    sheet.field("Name", name)
    marks(sheet, obj)
    sheet.field("Status", at(obj, "status.phase"))
    transitions = at(obj, "status.conditions", [])
    conditions(sheet, transitions, "LastTransitionTime", time=lambda text: moment(text) if text else UNSET)
    if quotas is not None:
        sheet.blank()
        _quotas(sheet, quotas)
    if limits is not None:
        sheet.blank()
        _limits(sheet, limits)


def _quotas(sheet: Sheet, quotas: list[Obj]) -> None:
    if not quotas:
        sheet.row(0, "No resource quota.")
        return
    sheet.row(0, "Resource Quotas")
    for found in sorted(quotas, key=lambda one: str(meta(one, "name"))):
        sheet.row(1, "Name:", meta(found, "name"))
        scopes = sorted(at(found, "spec.scopes", []))
        if scopes:
            sheet.field("Scopes", ", ".join(scopes), 1)
            for scope in scopes:
                if scope in _SCOPES:
                    sheet.row(1, f"* {_SCOPES[scope]}")
        sheet.row(1, "Resource", "Used", "Hard")
        sheet.row(1, "--------", "---", "---")
        _amounts(sheet, found, 1)


def _amounts(sheet: Sheet, quota: Obj, level: int) -> None:
    from karmada.kube.objects.quantity import canonical

    hard, used = at(quota, "status.hard", {}), at(quota, "status.used", {})
    for name in sorted(hard):
        sheet.row(level, name, canonical(used.get(name) or "0"), canonical(hard[name]))


async def quota(sheet: Sheet, obj: Obj, _around: Around) -> None:
    names(sheet, obj)
    scopes = sorted(at(obj, "spec.scopes", []))
    if scopes:
        sheet.field("Scopes", ", ".join(scopes))
        for scope in scopes:
            if scope in _SCOPES:
                sheet.row(0, f" * {_SCOPES[scope]}")
    sheet.heads(0, "Resource", "Used", "Hard")
    _amounts(sheet, obj, 0)


def _limits(sheet: Sheet, ranges: list[Obj]) -> None:
    if not ranges:
        sheet.row(0, "No LimitRange resource.")
        return
    sheet.row(0, "Resource Limits")
    _limit_table(sheet, [limit for found in ranges for limit in at(found, "spec.limits", [])], " ")


def _limit_table(sheet: Sheet, limits: list[Obj], indent: str) -> None:
    from karmada.kube.objects.quantity import canonical

    sheet.row(0, indent + _LIMIT_TITLES[0], *_LIMIT_TITLES[1:])
    sheet.row(0, indent + "----", *("-" * len(title) for title in _LIMIT_TITLES[1:]))
    for limit in limits:
        for name in sorted({name for kind in _LIMIT_KINDS for name in limit.get(kind) or ()}):
            values = [(limit.get(kind) or {}).get(name) for kind in _LIMIT_KINDS]
            cells = ["-" if value is None else canonical(value) for value in values]
            sheet.row(0, f"{indent}{limit['type']}", name, *cells)


async def limit_range(sheet: Sheet, obj: Obj, _around: Around) -> None:
    names(sheet, obj)
    _limit_table(sheet, at(obj, "spec.limits", []), "")
