"""The rules of the kind Cluster: defaults, validation and normalisation.

A cluster is not a custom resource: its rules run inside the server that stores it, in the order default (models),
validate, normalise (taints, zones). Types are checked by the schema; values of other types are ignored here, since
defaults are set before the schema is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from karmada.api.cluster import MAX_QUANTITY, default_resource_models
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, duplicate, invalid, not_supported, required, type_invalid
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj

MODES = ("Pull", "Push")
EFFECTS = ("NoSchedule", "NoExecute")
PROXY_SCHEMES = ("http", "https", "socks5")
_WANTED = "desired format: hostname, hostname:port, IP or IP:port"
_NO_LIMIT = Quantity.parse(MAX_QUANTITY)
_ZERO = Quantity.parse("0")


# defaults and normalisation, in place


def fill_models(cluster: Obj, *, new: bool) -> None:
    """Give a new cluster the usual grades; order given ones, from nothing and without limit."""
    spec = cluster.get("spec")
    if not isinstance(spec, dict):
        return
    models = spec.get("resourceModels")
    if models in (None, []):
        if new:
            spec["resourceModels"] = default_resource_models()
    elif _well_formed(models):
        spec["resourceModels"] = standardised(models)


def _well_formed(models: Any) -> bool:
    """Grades with ranges, as far as their types go; quantities that are none count as no ranges at all."""
    return isinstance(models, list) and all(
        isinstance(model, dict)
        and isinstance(model.get("grade"), int)
        and isinstance(model.get("ranges") or [], list)
        and all(_is_range(each) for each in model.get("ranges") or ())
        for model in models
    )


def _is_range(value: Any) -> bool:
    try:
        return isinstance(value, dict) and all(Quantity.parse(value[end]) is not None for end in ("min", "max"))
    except (KeyError, ValueError, TypeError):
        return False


def standardised(models: list[Obj]) -> list[Obj]:
    ordered = sorted(models, key=lambda model: model["grade"])
    first = ordered[0]
    ordered[0] = {**first, "ranges": [{**r, "min": "0"} for r in first.get("ranges") or ()]}
    last = ordered[-1]
    ordered[-1] = {**last, "ranges": [{**r, "max": MAX_QUANTITY} for r in last.get("ranges") or ()]}
    return ordered


def tidy(cluster: Obj, now: float) -> None:
    """Replace a spec that is not in its canonical form; never in place, since writes to /status share it."""
    spec = cluster.get("spec") or {}
    taints = spec.get("taints") or []
    if any(_is_undated(taint) for taint in taints):
        dated = [{**taint, "timeAdded": rfc3339(now)} if _is_undated(taint) else taint for taint in taints]
        cluster["spec"] = spec = {**spec, "taints": dated}
    if spec.get("zone") and not spec.get("zones"):
        rest = {key: value for key, value in spec.items() if key != "zone"}
        cluster["spec"] = {**rest, "zones": [spec["zone"]]}


def _is_undated(taint: Obj) -> bool:
    return taint.get("effect") == "NoExecute" and not taint.get("timeAdded")


# validation


def validate(cluster: Obj) -> list[FieldError]:
    """Validate a cluster whose fields have the right types."""
    spec = cluster.get("spec") or {}
    return [
        *_mode(spec),
        *_endpoint(spec.get("apiEndpoint")),
        *_secret("spec.secretRef", spec.get("secretRef")),
        *_secret("spec.impersonatorSecretRef", spec.get("impersonatorSecretRef")),
        *_proxy(spec.get("proxyURL")),
        *_label_value("spec.provider", spec.get("provider")),
        *_label_value("spec.region", spec.get("region")),
        *_zones(spec),
        *_taints(spec.get("taints") or ()),
        *_models(spec.get("resourceModels") or ()),
    ]


def _mode(spec: Obj) -> Iterator[FieldError]:
    mode = spec.get("syncMode") or ""
    if not mode:
        yield required("spec.syncMode")
    if mode not in MODES:
        yield not_supported("spec.syncMode", mode, MODES)


def _endpoint(url: str | None) -> Iterator[FieldError]:
    if not url:
        return
    path = "spec.apiEndpoint"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        parts.port  # noqa: B018 - reading it checks it
    except ValueError as error:
        yield invalid(path, url, f"apiEndpoint must be a valid URL: {error}; {_WANTED}")
        return
    if not host:
        yield invalid(path, url, f"host must be provided; {_WANTED}")
    if parts.username is not None:
        yield invalid(path, url, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, url, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, url, "query parameters are not permitted in the URL")


def _secret(path: str, ref: Obj | None) -> Iterator[FieldError]:
    if ref is not None:
        for field in ("namespace", "name"):
            if not ref.get(field):
                yield required(f"{path}.{field}")


def _proxy(url: str | None) -> Iterator[FieldError]:
    if not url:
        return
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        yield invalid("spec.proxyURL", url, str(error))
        return
    if scheme not in PROXY_SCHEMES:
        yield invalid("spec.proxyURL", url, f'unsupported scheme "{scheme}", must be http, https, or socks5')


def _label_value(path: str, value: str | None) -> Iterator[FieldError]:
    for wrong in names.label_value(value or ""):
        yield invalid(path, value, wrong)


def _zones(spec: Obj) -> Iterator[FieldError]:
    zone, zones = spec.get("zone"), spec.get("zones") or []
    if zone and zones:
        yield type_invalid("spec.spec", spec, "Zone and Zones cannot co-exist")
        return
    yield from _label_value("spec.Zone", zone)
    for each in zones:
        yield from _label_value("spec.Zones", each)


def _taints(taints: Any) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        path = f"spec.taints[{index}]"
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        for wrong in names.qualified_name(key):
            yield invalid(f"{path}.key", key, wrong)
        yield from _label_value(f"{path}.value", taint.get("value"))
        if not effect:
            yield required(f"{path}.effect")
        elif effect not in EFFECTS:
            yield not_supported(f"{path}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            found = duplicate(path, taint)
            yield FieldError(found.field, found.reason, f"{found.body}: taints must be unique by key and effect pair")
        seen.add((key, effect))


def _models(models: Any) -> Iterator[FieldError]:
    """Only the first error: others would follow from it."""
    wrong = _first_wrong(models) if models and _well_formed(models) else ""
    if wrong:
        yield invalid("spec.resourceModels", models, wrong)


def _first_wrong(models: list[Obj]) -> str:
    for before, model in pairwise([None, *models]):
        wrong = _wrong_shape(before, model or {}) or _wrong_ranges(before, model or {})
        if wrong:
            return wrong
    if any(Quantity.parse(r["max"]) != _NO_LIMIT for r in _ranges(models[-1])):
        return "The max value of each resource in the last model should be MaxInt64"
    return ""


def _wrong_shape(before: Obj | None, model: Obj) -> str:
    if before is not None:
        if before.get("grade") == model.get("grade"):
            return "The grade of each models should not be the same"
        if len(_ranges(before)) != len(_ranges(model)):
            return "The number of resource types should be the same"
    if any(Quantity.parse(r["max"]) <= Quantity.parse(r["min"]) for r in _ranges(model)):
        return "The max value of each resource must be greater than the min value"
    return ""


def _wrong_ranges(before: Obj | None, model: Obj) -> str:
    if before is None:
        if any(Quantity.parse(r["min"]) != _ZERO for r in _ranges(model)):
            return "The min value of each resource in the first model should be 0"
        return ""
    for earlier, here in zip(_ranges(before), _ranges(model), strict=True):
        if earlier.get("name") != here.get("name"):
            return "The resource types of each models should be the same"
        if Quantity.parse(earlier["max"]) != Quantity.parse(here["min"]):
            return "Model intervals for resources must be contiguous and non-overlapping"
    return ""


def _ranges(model: Obj) -> list[Obj]:
    return list(model.get("ranges") or ())
