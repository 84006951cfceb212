"""What a cluster has decided for itself and keeps when a template is applied to it again.

Each rule gives the object to apply: a new one that shares its parts with the desired and the observed one, or the
desired one itself. Where nothing is to be kept no field appears, so that comparing the result with the live object
shows whether anything has to be applied at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from karmada.api.well_known import RETAIN_REPLICAS, TRUE
from karmada.interpreter.native.fields import entries, number, section, text
from karmada.interpreter.native.kinds import (
    CLAIM,
    DEPLOYMENT,
    JOB,
    POD,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    TOKEN_SECRET,
    VOLUME,
)
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

Retainer = Callable[[Obj, Obj], Obj]

_POD_FIELDS = ("nodeName", "serviceAccountName", "volumes")


def _with(obj: Obj, path: tuple[str, ...], value: object) -> Obj:
    """Return the object with a value at a path."""
    if len(path) == 1:
        return {**obj, path[0]: value}
    return {**obj, path[0]: _with(section(obj, path[0]), path[1:], value)}


def _taken(target: Obj, source: Obj, fields: Iterable[str]) -> Obj:
    """Return the target with fields as the source has them, also where it has none."""
    result = dict(target)
    for field in fields:
        if source.get(field) is None:
            result.pop(field, None)
        else:
            result[field] = source[field]
    return result


def _deployment(desired: Obj, observed: Obj) -> Obj:
    """Return the replicas of the cluster, which scales it when a label of the template says so."""
    if meta.labels(desired).get(RETAIN_REPLICAS) != TRUE:
        return desired
    replicas = section(observed, "spec").get("replicas")
    if replicas.__class__ is not int:
        raise InterpreterError(f"spec.replicas of the observed object: expected a whole number, got {replicas!r}")
    return _with(desired, ("spec", "replicas"), replicas)


def _pod(desired: Obj, observed: Obj) -> Obj:
    """Retain where a Pod runs, as whom, and the volumes that its admission put into it."""
    there = section(observed, "spec")
    spec = _taken(section(desired, "spec"), there, _POD_FIELDS)
    for field in ("containers", "initContainers"):
        found = {container.get("name"): container for container in entries(there, field)}
        if found and spec.get(field):
            spec[field] = [_mounted(container, found) for container in entries(spec, field)]
    return {**desired, "spec": spec}


def _mounted(container: Obj, found: dict[str | None, Obj]) -> Obj:
    other = found.get(container.get("name"))
    return container if other is None else _taken(container, other, ("volumeMounts",))


def _service(desired: Obj, observed: Obj) -> Obj:
    """Retain the address of a Service, and the port for health checks."""
    there = section(observed, "spec")
    kept: Obj = {}
    if number(there, "healthCheckNodePort") > 0:
        kept["healthCheckNodePort"] = there["healthCheckNodePort"]
    if text(there, "clusterIP"):
        kept["clusterIP"] = there["clusterIP"]
    return {**desired, "spec": {**section(desired, "spec"), **kept}} if kept else desired


def _service_account(desired: Obj, observed: Obj) -> Obj:
    """Return what the cluster has added to its Secrets."""
    added: Obj = {}
    for field in ("secrets", "imagePullSecrets"):
        wanted = entries(desired, field)
        names = {secret.get("name") for secret in wanted}
        more = [secret for secret in entries(observed, field) if secret.get("name") not in names]
        if more:
            added[field] = [*wanted, *more]
    return {**desired, **added} if added else desired


def _claim(desired: Obj, observed: Obj) -> Obj:
    """Retain the volume a claim was bound to."""
    volume = text(section(observed, "spec"), "volumeName")
    return _with(desired, ("spec", "volumeName"), volume) if volume else desired


def _volume(desired: Obj, observed: Obj) -> Obj:
    """Retain the claim that has a volume."""
    claim = section(observed, "spec").get("claimRef")
    return desired if claim is None else _with(desired, ("spec", "claimRef"), claim)


def _job(desired: Obj, observed: Obj) -> Obj:
    """Retain the labels by which a Job knows its Pods."""
    there = section(observed, "spec")
    selected = section(there, "selector").get("matchLabels")
    if selected is not None:
        desired = _with(desired, ("spec", "selector", "matchLabels"), selected)
    labels = section(section(there, "template"), "metadata").get("labels")
    if labels is not None:
        desired = _with(desired, ("spec", "template", "metadata", "labels"), labels)
    return desired


def _secret(desired: Obj, observed: Obj) -> Obj:
    """Retain a token that the cluster has made."""
    if desired.get("type") != TOKEN_SECRET or observed.get("data") is None:
        return desired
    return {**desired, "data": observed["data"]}


RETAINERS: dict[GVK, Retainer] = {
    DEPLOYMENT: _deployment,
    POD: _pod,
    SERVICE: _service,
    SERVICE_ACCOUNT: _service_account,
    CLAIM: _claim,
    VOLUME: _volume,
    JOB: _job,
    SECRET: _secret,
}
"""From what is desired and what is observed to what is to be applied."""
