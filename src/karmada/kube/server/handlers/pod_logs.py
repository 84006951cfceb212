"""Requests for the logs of a pod: their options, and which container they select."""

from __future__ import annotations

from typing import NamedTuple

from karmada.kube.kinds.podspec import containers_of
from karmada.kube.objects import meta
from karmada.kube.objects.errors import (
    BadRequest,
    FieldError,
    FieldErrors,
    Invalid,
    forbidden_field,
    invalid,
    not_supported,
)
from karmada.kube.objects.gvk import GroupKind
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.server.http.request import Query


class LogOptions(NamedTuple):
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: float | None = None
    """Seconds since the epoch."""
    tail: int | None = None
    limit: int | None = None
    """Bytes"""
    stream: str = "All"

    @classmethod
    def parse(cls, query: Query, pod: str, now: float) -> LogOptions:
        """Parse the query; raises the error for invalid options."""
        errors = FieldErrors()
        tail = _number(query, "tailLines", 0, errors)
        limit = _number(query, "limitBytes", 1, errors)
        seconds = _number(query, "sinceSeconds", 1, errors)
        since = now - seconds if seconds is not None else None
        if query.get("sinceTime"):
            if seconds is not None:
                errors.append(forbidden_field("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
            try:
                since = parse_time(query.get("sinceTime"))
            except ValueError as error:
                raise BadRequest(str(error)) from error
        stream = query.get("stream") or "All"
        if stream not in ("All", "Stdout", "Stderr"):
            errors.append(not_supported("stream", stream, ("All", "Stdout", "Stderr")))
        elif stream != "All" and tail is not None:
            errors.append(forbidden_field("", "`tailLines` and specific `stream` are mutually exclusive for now"))
        if errors:
            raise Invalid.of(GroupKind("", "PodLogOptions"), pod, errors)
        follow, previous, timestamps = (query.flag(name) for name in ("follow", "previous", "timestamps"))
        return cls(follow, previous, timestamps, since, tail, limit, stream)


def _number(query: Query, name: str, least: int, errors: list[FieldError]) -> int | None:
    text = query.get(name)
    if not text:
        return None
    try:
        value = int(text)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
    if value < least:
        errors.append(invalid(name, value, f"must be greater than {'or equal to ' if least == 0 else ''}0"))
    return value


def container_named(pod: Obj, name: str) -> Obj | None:
    """Return a container's entry in the pod's spec, of whatever sort it is."""
    return next((c for c in containers_of(pod.get("spec") or {}) if c["name"] == name), None)


def chosen_container(pod: Obj, name: str) -> Obj:
    """Return the requested container, or the only one."""
    spec = pod.get("spec") or {}
    if name:
        found = container_named(pod, name)
        if found is None:
            raise BadRequest(f"container {name} is not valid for pod {meta.name(pod)}")
        return found
    containers: list[Obj] = spec.get("containers") or []
    if len(containers) == 1:
        return containers[0]
    text = f"a container name must be specified for pod {meta.name(pod)}, choose one of: {_names(containers)}"
    if spec.get("initContainers"):
        text += f" or one of the init containers: {_names(spec['initContainers'])}"
    if spec.get("ephemeralContainers"):
        text += f" or one of the ephemeral containers: {_names(spec['ephemeralContainers'])}"
    raise BadRequest(text)


def _names(containers: list[Obj]) -> str:
    return f"[{' '.join(container['name'] for container in containers)}]"
