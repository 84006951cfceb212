"""The audit log: one JSON line for each request that was answered, in a file only its owner reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import orjson

from karmada.kube.objects.times import micro_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.clock import Clock
from karmada.kube.server.request import Request


class AuditLog:
    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file: BinaryIO = os.fdopen(descriptor, "ab", buffering=0)

    def record(self, request: Request, status: int, audit_id: str) -> None:
        self._file.write(orjson.dumps(self._event(request, status, audit_id)) + b"\n")

    def close(self) -> None:
        self._file.close()

    def _event(self, request: Request, status: int, audit_id: str) -> Obj:
        info = request.info
        stamp = micro_time(self._clock.now())
        event: Obj = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": audit_id,
            "stage": "ResponseComplete",
            "requestURI": info.path,
            "verb": info.verb,
            "user": request.user.info(),
            "sourceIPs": [request.raw.remote] if request.raw is not None and request.raw.remote else [],
            "userAgent": request.headers.get("User-Agent", ""),
            "responseStatus": {"metadata": {}, "code": status},
            "requestReceivedTimestamp": stamp,
            "stageTimestamp": stamp,
            "annotations": {"authorization.k8s.io/decision": "forbid" if status == 403 else "allow"},
        }
        if info.is_resource:
            named = {
                "resource": info.resource,
                "namespace": info.namespace,
                "name": info.name,
                "apiGroup": info.group,
                "apiVersion": info.version,
                "subresource": info.subresource,
            }
            event["objectRef"] = {key: value for key, value in named.items() if value}
        return event
