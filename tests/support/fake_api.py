"""A small list/watch API in memory, as much of one as the client and the runtime need in their unit tests.

`FakeApi` holds objects and their history; `FakeTransport` is in-process; `application` serves it over HTTP. Faults
can be injected: broken watches, compaction, a restart, requests that fail.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

from karmada.kube.client.transport import Call, ConnectionFailed, Transport, WatchEvent
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    MethodNotAllowed,
    NotFound,
    Timeout,
)
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, EVENTS, LEASES, NODES, PODS
from karmada.kube.objects.selectors import parse_fields, parse_labels
from karmada.kube.objects.types import Obj

KINDS: dict[GVR, tuple[str, bool, tuple[str, ...]]] = {
    PODS: ("Pod", True, ("po",)),
    CONFIG_MAPS: ("ConfigMap", True, ("cm",)),
    EVENTS: ("Event", True, ("ev",)),
    NODES: ("Node", False, ("no",)),
    LEASES: ("Lease", True, ()),
    GVR("apps", "v1", "deployments"): ("Deployment", True, ("deploy",)),
}
ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_END, _BREAK = object(), object()


def merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


class _Watcher:
    def __init__(self, matches: Callable[[Obj], bool], gvr: GVR, namespace: str, bookmarks: bool) -> None:
        self.matches, self.gvr, self.namespace, self.bookmarks = matches, gvr, namespace, bookmarks
        self.queue: asyncio.Queue[Any] = asyncio.Queue()

    def sees(self, gvr: GVR, obj: Obj) -> bool:
        return gvr == self.gvr and self.namespace in ("", obj["metadata"].get("namespace", ""))


class FakeApi:
    def __init__(self, kinds: dict[GVR, tuple[str, bool, tuple[str, ...]]] | None = None) -> None:
        self.kinds = dict(kinds or KINDS)
        self.objects: dict[tuple[GVR, str, str], Obj] = {}
        self.revision = 10
        self.compacted = 0
        self.history: list[tuple[int, GVR, Obj | None, Obj | None]] = []
        self.watchers: list[_Watcher] = []
        self.backup: tuple[dict[tuple[GVR, str, str], Obj], int] = ({}, self.revision)
        self.calls: list[Call] = []
        self.aggregated_discovery = True
        self.stale: set[str] = set()
        self.fail: Callable[[Call], Exception | None] = lambda _: None
        self.delay: Callable[[Call], Any] | None = None

    # faults

    def compact(self) -> None:
        """Drop all history."""
        self.compacted = self.revision
        self.history.clear()

    def break_watches(self, *, cleanly: bool = False) -> None:
        for watcher in self.watchers:
            watcher.queue.put_nowait(_END if cleanly else _BREAK)
        self.watchers.clear()

    def restore(self) -> None:
        """Go back to the backup, as a server does whose store was put back to an older state."""
        objects, self.revision = self.backup
        self.objects = dict(objects)
        self.history.clear()
        self.compacted = self.revision  # what led there is not in it
        self.break_watches()

    def bookmark(self) -> None:
        for watcher in self.watchers:
            if watcher.bookmarks:
                kind = self.kinds[watcher.gvr][0]
                mark = {"kind": kind, "metadata": {"resourceVersion": str(self.revision)}}
                watcher.queue.put_nowait(WatchEvent("BOOKMARK", mark))

    # requests

    async def handle(self, call: Call) -> Any:
        self.calls.append(call)
        if self.delay is not None:
            await self.delay(call)
        error = self.fail(call)
        if error is not None:
            raise error
        parts = [part for part in call.path.split("/") if part]
        if len(parts) == 1 or (parts[0], len(parts)) in (("api", 2), ("apis", 3)):
            discovered = self._discover(parts, call)
            if discovered is not None:
                return discovered
        if parts == ["version"]:
            return {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
        gvr, namespace, name, subresource = self._parse(parts)
        if name:
            return self._object(call, gvr, namespace, name, subresource)
        if call.method == "GET":
            return self._list(call, gvr, namespace)
        if call.method == "POST":
            return self._create(gvr, namespace, call.body)
        if call.method == "DELETE":
            matches = self._selector(call)
            gone = [o for (g, n, _), o in self.objects.items() if g == gvr and n == namespace and matches(o)]
            for obj in gone:
                self._remove(gvr, obj)
            return {"kind": self.kinds[gvr][0] + "List", "apiVersion": "v1", "metadata": {}, "items": gone}
        raise MethodNotAllowed()

    def _parse(self, parts: list[str]) -> tuple[GVR, str, str, str]:
        group, rest = ("", parts[1:]) if parts[0] == "api" else (parts[1], parts[2:])
        version, rest = rest[0], rest[1:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        gvr = GVR(group, version, rest[0])
        if gvr not in self.kinds:
            raise NotFound.resource()
        return gvr, namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else ""

    def _object(self, call: Call, gvr: GVR, namespace: str, name: str, subresource: str) -> Obj:
        stored = self.objects.get((gvr, namespace, name))
        if stored is None:
            raise NotFound.of(gvr.group_resource, name)
        if call.method == "GET":
            return stored
        if call.method == "POST":
            return {"kind": "Status", "status": "Success", "details": {"subresource": subresource, **call.body}}
        if call.method == "DELETE":
            wanted = (call.body or {}).get("preconditions") or {}
            if any(value != stored["metadata"][field] for field, value in wanted.items()):
                raise Conflict.of(gvr.group_resource, name, "the precondition does not match")
            self._remove(gvr, stored)
            return {"kind": "Status", "apiVersion": "v1", "status": "Success"}
        if call.method == "PUT":
            return self._update(gvr, stored, copy_json(call.body), subresource)
        if call.method == "PATCH":
            if call.content_type == "application/json-patch+json":
                raise BadRequest("the fake knows no JSON patch")
            return self._update(gvr, stored, merge(copy_json(stored), copy_json(call.body)), subresource)
        raise MethodNotAllowed()

    # storage

    def _create(self, gvr: GVR, namespace: str, body: Obj) -> Obj:
        obj: Obj = copy_json(body)
        metadata = obj.setdefault("metadata", {})
        if namespace:
            metadata["namespace"] = namespace
        if "generateName" in metadata and "name" not in metadata:
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        if (gvr, namespace, metadata["name"]) in self.objects:
            raise AlreadyExists.of(gvr.group_resource, metadata["name"])
        metadata["uid"] = str(uuid.uuid4())
        obj.setdefault("apiVersion", gvr.api_version)
        obj.setdefault("kind", self.kinds[gvr][0])
        return self._commit(gvr, None, obj)

    def _update(self, gvr: GVR, stored: Obj, obj: Obj, subresource: str) -> Obj:
        version = obj["metadata"].get("resourceVersion")
        if version and version != stored["metadata"]["resourceVersion"]:
            raise Conflict.stale(gvr.group_resource, obj["metadata"]["name"])
        if subresource == "status":
            obj = {**stored, "status": obj.get("status")}
        obj["metadata"] = {**obj["metadata"], "uid": stored["metadata"]["uid"]}
        obj["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        if obj == stored:
            return stored
        return self._commit(gvr, stored, obj)

    def _remove(self, gvr: GVR, stored: Obj) -> None:
        self._commit(gvr, stored, None)

    def _commit(self, gvr: GVR, old: Obj | None, new: Obj | None) -> Obj:
        self.revision += 1
        last = new if new is not None else old
        assert last is not None
        last = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self.revision)}}
        key = (gvr, last["metadata"].get("namespace", ""), last["metadata"]["name"])
        if new is None:
            del self.objects[key]
        else:
            self.objects[key] = last
        change = (self.revision, gvr, old, None if new is None else last)
        self.history.append(change)
        for watcher in self.watchers:
            self._offer(watcher, change)
        return last

    def _offer(self, watcher: _Watcher, change: tuple[int, GVR, Obj | None, Obj | None]) -> None:
        revision, gvr, old, new = change
        if not watcher.sees(gvr, new if new is not None else old):  # type: ignore[arg-type]
            return
        was = old is not None and watcher.matches(old)
        now = new is not None and watcher.matches(new)
        if now:
            watcher.queue.put_nowait(WatchEvent("MODIFIED" if was else "ADDED", new))  # type: ignore[arg-type]
        elif was and old is not None:
            gone = {**old, "metadata": {**old["metadata"], "resourceVersion": str(revision)}}
            watcher.queue.put_nowait(WatchEvent("DELETED", gone))

    # list and watch

    def _selector(self, call: Call) -> Callable[[Obj], bool]:
        labels = parse_labels(call.query.get("labelSelector", ""))
        fields = parse_fields(call.query.get("fieldSelector", ""))

        def field(obj: Obj, path: str) -> str:
            value: Any = obj
            for step in path.split("."):
                value = (value or {}).get(step)
            return str(value or "")

        def matches(obj: Obj) -> bool:
            return labels.matches(obj["metadata"].get("labels")) and fields.matches(lambda path: field(obj, path))

        return matches

    def listed(self, gvr: GVR, namespace: str = "") -> list[Obj]:
        found = [(n, name, o) for (g, n, name), o in self.objects.items() if g == gvr and namespace in ("", n)]
        return [obj for _, _, obj in sorted(found, key=lambda item: item[:2])]

    def _list(self, call: Call, gvr: GVR, namespace: str) -> Obj:
        version = call.query.get("resourceVersion", "")
        if version not in ("", "0") and int(version) > self.revision:
            causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            raise Timeout(f"Too large resource version: {version}", details={"causes": causes})
        matches = self._selector(call)
        items = [obj for obj in self.listed(gvr, namespace) if matches(obj)]
        metadata: Obj = {"resourceVersion": str(self.revision)}
        limit, start = int(call.query.get("limit", 0)), 0
        token = call.query.get("continue", "")
        if token:
            at, start = (int(part) for part in token.split(":"))
            if at < self.compacted:
                raise Expired("The provided continue parameter is too old")
        if limit and version != "0":
            if start + limit < len(items):
                metadata["continue"] = f"{self.revision}:{start + limit}"
            items = items[start : start + limit]
        if "as=PartialObjectMetadataList" in call.accept:
            items = [self._partial(obj) for obj in items]
        return {
            "kind": self.kinds[gvr][0] + "List",
            "apiVersion": gvr.api_version,
            "metadata": metadata,
            "items": items,
        }

    @staticmethod
    def _partial(obj: Obj) -> Obj:
        return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        self.calls.append(call)
        error = self.fail(call)
        if error is not None:
            raise error
        gvr, namespace, _, _ = self._parse([part for part in call.path.split("/") if part])
        watcher = _Watcher(self._selector(call), gvr, namespace, call.query.get("allowWatchBookmarks") == "true")
        since = int(call.query.get("resourceVersion") or 0)
        if since < self.compacted:
            raise Expired(f"too old resource version: {since} ({self.compacted})")
        if since > self.revision:
            causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
            raise Timeout(f"Too large resource version: {since}", details={"causes": causes})
        for change in self.history:
            if change[0] > since:
                self._offer(watcher, change)
        self.watchers.append(watcher)
        partial = "as=PartialObjectMetadata" in call.accept
        try:
            while True:
                event = await watcher.queue.get()
                if event is _END:
                    return
                if event is _BREAK:
                    raise ConnectionFailed("the stream broke")
                if partial and event.type != "BOOKMARK":
                    event = WatchEvent(event.type, self._partial(event.object))
                yield event
        finally:
            if watcher in self.watchers:
                self.watchers.remove(watcher)

    # discovery

    def _discover(self, parts: list[str], call: Call) -> Obj | None:
        if parts[0] not in ("api", "apis"):
            return None
        core = parts[0] == "api"
        groups: dict[str, dict[str, list[GVR]]] = {}
        for gvr in self.kinds:
            if (gvr.group == "") == core:
                groups.setdefault(gvr.group, {}).setdefault(gvr.version, []).append(gvr)
        if len(parts) == 1:
            if self.aggregated_discovery and "APIGroupDiscoveryList" in call.accept:
                return self._aggregated(groups)
            if core:
                return {"kind": "APIVersions", "versions": ["v1"]}
            listed = []
            for group, versions in groups.items():
                served = [{"groupVersion": f"{group}/{v}", "version": v} for v in versions]
                listed.append({"name": group, "versions": served, "preferredVersion": served[0]})
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        group, version = ("", parts[1]) if core else (parts[1], parts[2])
        if group in self.stale:
            raise ApiError("unavailable", code=503, reason="ServiceUnavailable")
        if version not in groups.get(group, {}):
            return None
        resources: list[Obj] = []
        for gvr in groups[group][version]:
            kind, namespaced, short = self.kinds[gvr]
            entry = {"name": gvr.resource, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind}
            resources += [
                {**entry, "verbs": ALL_VERBS, "shortNames": list(short)},
                {**entry, "name": f"{gvr.resource}/status", "singularName": "", "verbs": ["get", "patch", "update"]},
            ]
        return {"kind": "APIResourceList", "groupVersion": f"{group}/{version}".strip("/"), "resources": resources}

    def _aggregated(self, groups: dict[str, dict[str, list[GVR]]]) -> Obj:
        items: list[Obj] = []
        for group, versions in groups.items():
            described = []
            for version, gvrs in versions.items():
                resources = [
                    {
                        "resource": gvr.resource,
                        "responseKind": {"group": "", "version": "", "kind": self.kinds[gvr][0]},
                        "scope": "Namespaced" if self.kinds[gvr][1] else "Cluster",
                        "singularResource": self.kinds[gvr][0].lower(),
                        "shortNames": list(self.kinds[gvr][2]),
                        "verbs": ALL_VERBS,
                        "subresources": [{"subresource": "status", "verbs": ["get", "patch", "update"]}],
                    }
                    for gvr in gvrs
                ]
                freshness = "Stale" if group in self.stale else "Current"
                described.append({"version": version, "freshness": freshness, "resources": resources})
            items.append({"metadata": {"name": group}, "versions": described})
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


class FakeTransport(Transport):
    def __init__(self, api: FakeApi) -> None:
        self.api = api

    async def call(self, call: Call) -> Any:
        return await self.api.handle(call)

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        return self.api.watch(call)


def application(api: FakeApi) -> Any:
    """The same API as an aiohttp application."""
    from aiohttp import web

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        accept = request.headers.get("Accept", "")
        call = Call(request.method, request.path, dict(request.query), body, request.content_type, accept)
        try:
            if call.query.get("watch") == "true":
                return await stream(request, call)
            answer = await api.handle(call)
        except ApiError as error:
            headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else {}
            return web.json_response(error.status(), status=error.http_code, headers=headers)
        except ConnectionFailed:
            assert request.transport is not None
            request.transport.abort()
            return web.Response(status=500)
        if isinstance(answer, dict) and answer.get("kind", "").endswith("List") and call.path.startswith("/api/v1"):
            bare = [{k: v for k, v in o.items() if k not in ("apiVersion", "kind")} for o in answer.get("items", [])]
            answer = {**answer, "items": bare}
        return web.json_response(answer, status=201 if call.method == "POST" else 200)

    async def stream(request: web.Request, call: Call) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            async for event in api.watch(call):
                line = json.dumps({"type": event.type, "object": event.object})
                await response.write(line.encode() + b"\n")
        except ApiError as error:
            await response.write(json.dumps({"type": "ERROR", "object": error.status()}).encode() + b"\n")
        except ConnectionFailed:
            assert request.transport is not None
            request.transport.abort()
        return response

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    return app


__all__ = ["CONFIG_MAPS", "EVENTS", "LEASES", "NODES", "PODS", "FakeApi", "FakeTransport", "application"]
