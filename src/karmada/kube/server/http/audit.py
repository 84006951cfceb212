"""The audit log: one JSON line for each request that was answered, in a file only its owner reads.

A line has the user, the request and the response code; never a body. Requests that were refused early (bad credentials,
impersonation that is not allowed) are in it, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.times import micro_time
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.request import Request, RequestInfo


class Answered(NamedTuple):
    """An answered request; without a `caller` it was not authenticated, without a `request` it got no further."""

    raw: Any
    info: RequestInfo
    caller: User | None
    request: Request | None
    status: int
    audit_id: str
    seconds: float


Record = Callable[[Answered], None]


class AuditLog:
    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file: BinaryIO = os.fdopen(descriptor, "ab", buffering=0)

    def record(self, answered: Answered) -> None:
        self._file.write(orjson.dumps(_event(answered, self._clock.now())) + b"\n")

    def close(self) -> None:
        self._file.close()


def _event(answered: Answered, now: float) -> Obj:
    raw, info, caller, request, status, audit_id, seconds = answered
    event: Obj = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": audit_id,
        "stage": "ResponseComplete",
        "requestURI": raw.raw_path,
        "verb": info.verb,
        "user": caller.info() if caller is not None else {},
        "sourceIPs": [raw.remote] if raw.remote else [],
        "userAgent": raw.headers.get("User-Agent", ""),
        "responseStatus": {"metadata": {}, "code": status},
        "requestReceivedTimestamp": micro_time(now - seconds),
        "stageTimestamp": micro_time(now),
    }
    if request is not None:
        if request.user is not caller:
            event["impersonatedUser"] = request.user.info()
        decision = "allow" if request.authorized else "forbid"
        event["annotations"] = {"authorization.k8s.io/decision": decision, **request.annotations}
    if info.is_resource:
        event["objectRef"] = _reference(info)
    return event


def _reference(info: RequestInfo) -> Obj:
    named = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    return {key: value for key, value in named.items() if value}
