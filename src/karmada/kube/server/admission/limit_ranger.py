"""LimitRanger: containers get a namespace's default requests and limits, and nothing may be outside its bounds."""

from __future__ import annotations

from collections.abc import Iterator

from karmada.kube.kinds import checks
from karmada.kube.kinds.pod_amounts import pod_resources
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin, refuse

LIMIT_RANGES = GroupResource("", "limitranges")
ANNOTATION = "kubernetes.io/limit-ranger"
_PODS, _CLAIMS = GroupResource("", "pods"), GroupResource("", "persistentvolumeclaims")

Amounts = dict[str, Quantity]


class LimitRanger(BuiltinPlugin):
    name = "LimitRanger"

    def handles(self, attributes: Attributes) -> bool:
        if attributes.subresource:
            return False
        if attributes.group_resource == _PODS:
            return attributes.operation == CREATE
        return attributes.group_resource == _CLAIMS and attributes.operation in (CREATE, UPDATE)

    async def admit(self, attributes: Attributes) -> None:
        if attributes.group_resource == _PODS and attributes.obj is not None:
            for limit_range in self.reader.list(LIMIT_RANGES, attributes.namespace):
                apply_defaults(attributes.obj, limit_range)

    async def validate(self, attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        check = _pod_violations if attributes.group_resource == _PODS else _claim_violations
        for limit_range in self.reader.list(LIMIT_RANGES, attributes.namespace):
            found = list(dict.fromkeys(v for item in _items(limit_range) for v in check(item, attributes.obj)))
            if found:
                raise refuse(attributes, found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _items(limit_range: Obj) -> list[Obj]:
    return (limit_range.get("spec") or {}).get("limits") or []


# --- defaults


def apply_defaults(pod: Obj, limit_range: Obj) -> None:
    """In place: the requests and limits that containers do not set, and an annotation that lists them."""
    requests: Obj = {}
    limits: Obj = {}
    for item in _items(limit_range):
        if item.get("type") == "Container":
            requests |= item.get("defaultRequest") or {}
            limits |= item.get("default") or {}
    if not requests and not limits:
        return
    applied: list[str] = []
    spec = pod.get("spec") or {}
    for key, what in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(key) or ():
            _merge(container, requests, limits, what, applied)
    if applied:
        meta = pod["metadata"]
        meta["annotations"] = {
            **(meta.get("annotations") or {}),
            ANNOTATION: "LimitRanger plugin set: " + "; ".join(applied),
        }


def _merge(container: Obj, requests: Obj, limits: Obj, what: str, applied: list[str]) -> None:
    resources = container.setdefault("resources", {})
    for kind, defaults, word in (("requests", requests, "request"), ("limits", limits, "limit")):
        have = resources.get(kind) or {}
        added = {name: amount for name, amount in defaults.items() if name not in have}
        if added:
            resources[kind] = {**have, **added}
            applied.append(f"{', '.join(sorted(added))} {word} for {what} {container.get('name')}")


# --- bounds


def _amounts(found: Obj | None) -> Amounts:
    return {name: parsed for name, value in (found or {}).items() if (parsed := checks.quantity(value)) is not None}


def _pod_violations(item: Obj, pod: Obj) -> Iterator[str]:
    spec = pod.get("spec") or {}
    kind = item.get("type") or ""
    if kind == "Container":
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            resources = container.get("resources") or {}
            yield from _outside(kind, item, _amounts(resources.get("requests")), _amounts(resources.get("limits")))
    elif kind == "Pod":
        yield from _outside(kind, item, pod_resources(spec, "requests"), pod_resources(spec, "limits"))


def _claim_violations(item: Obj, claim: Obj) -> Iterator[str]:
    if item.get("type") != "PersistentVolumeClaim":
        return
    requests = _amounts(((claim.get("spec") or {}).get("resources") or {}).get("requests"))
    kind = "PersistentVolumeClaim"
    for name, least in sorted(_amounts(item.get("min")).items()):
        yield from _too_little(kind, name, least, requests.get(name), None)
    for name, most in sorted(_amounts(item.get("max")).items()):
        requested = requests.get(name)
        if requested is None:
            yield f"maximum {name} usage per {kind} is {most}.  No request is specified"
        elif requested > most:
            yield f"maximum {name} usage per {kind} is {most}, but request is {requested}"


def _outside(kind: str, item: Obj, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in sorted(_amounts(item.get("min")).items()):
        yield from _too_little(kind, name, least, requests.get(name), limits.get(name))
    for name, most in sorted(_amounts(item.get("max")).items()):
        yield from _too_much(kind, name, most, requests.get(name), limits.get(name))
    for name, ratio in sorted(_amounts(item.get("maxLimitRequestRatio")).items()):
        yield from _too_far_apart(kind, name, ratio, requests.get(name), limits.get(name))


def _too_little(
    kind: str, name: str, least: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    text = f"minimum {name} usage per {kind} is {least}"
    if request is None:
        yield f"{text}.  No request is specified"
    elif request < least:
        yield f"{text}, but request is {request}"
    elif limit is not None and limit < least:
        yield f"{text}, but limit is {limit}"


def _too_much(kind: str, name: str, most: Quantity, request: Quantity | None, limit: Quantity | None) -> Iterator[str]:
    text = f"maximum {name} usage per {kind} is {most}"
    if limit is None:
        yield f"{text}.  No limit is specified"
    elif limit > most:
        yield f"{text}, but limit is {limit}"
    elif request is not None and request > most:
        yield f"{text}, but request is {request}"


def _too_far_apart(
    kind: str, name: str, most: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    text = f"{name} max limit to request ratio per {kind} is {most}"
    if not request:
        yield f"{text}, but no request is specified or request is 0"
    elif not limit:
        yield f"{text}, but no limit is specified or limit is 0"
    elif limit.nano * 1000 > most.milli() * request.nano:
        yield f"{text}, but provided ratio is {limit.nano / request.nano:f}"
