"""Endpoints that do not store their body: reviews, tokens, bindings, evictions, connections.

Connections to pods (logs, exec, port-forward, proxy) go through a `Connector`, which whatever runs the pods provides.
Without one the responses are those of a cluster in which no pod is scheduled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from karmada.kube.kinds.pod_subresources import bind, binding_errors, mark_evicted
from karmada.kube.kinds.policy import evict, selects
from karmada.kube.kinds.resource import Reader, Resource
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import (
    ApiError,
    BadRequest,
    Conflict,
    MethodNotAllowed,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
)
from karmada.kube.objects.gvk import GVK, GVR, GroupResource
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.patch.managedfields import update_managers
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.admission.chain import Chain
from karmada.kube.server.admission.interface import CONNECT, CREATE, Attributes
from karmada.kube.server.auth.authentication import Authenticator
from karmada.kube.server.auth.rbac import Authorizer
from karmada.kube.server.auth.reviews import review
from karmada.kube.server.auth.tokens import TokenIssuer, request_token
from karmada.kube.server.handlers.aside import aside
from karmada.kube.server.handlers.deletes import Deletes, check_preconditions
from karmada.kube.server.handlers.dispatch import Handlers, Place, created, place
from karmada.kube.server.handlers.pod_logs import LogOptions, chosen_container
from karmada.kube.server.handlers.writes import CONFLICT_TRIES, Change, Writes, WriteScope, manager_of
from karmada.kube.server.http.options import WriteOptions, delete_options, write_options
from karmada.kube.server.http.request import Query, Request
from karmada.kube.server.http.results import ObjectResult, RawResult, Result

PODS = GroupResource("", "pods")
_PODS_GVR = GVR("", "v1", "pods")
_BUDGETS_GVR = GVR("policy", "v1", "poddisruptionbudgets")
SERVICES = GroupResource("", "services")
NODES = GroupResource("", "nodes")
BUDGETS = GroupResource("policy", "poddisruptionbudgets")
_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
REVIEWS = (
    GroupResource(_AUTHENTICATION, "tokenreviews"),
    GroupResource(_AUTHENTICATION, "selfsubjectreviews"),
    GroupResource(_AUTHORIZATION, "subjectaccessreviews"),
    GroupResource(_AUTHORIZATION, "selfsubjectaccessreviews"),
    GroupResource(_AUTHORIZATION, "selfsubjectrulesreviews"),
    GroupResource(_AUTHORIZATION, "localsubjectaccessreviews"),
)
_TOKEN_REQUEST = GVK(_AUTHENTICATION, "v1", "TokenRequest")
_BINDING = GVK("", "v1", "Binding")
_EVICTION = GVK("policy", "v1", "Eviction")
_UPDATE = WriteOptions("UpdateOptions", manager="kube-apiserver")
_CONNECT_KINDS = {"exec": "PodExecOptions", "attach": "PodAttachOptions", "portforward": "PodPortForwardOptions"}
_REVIEWED = frozenset({"SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "TokenReview"})
"""Reviews that are returned as they were posted, with a status; the others are returned as new objects."""
_SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class Connector(Protocol):
    """Opens connections to pods, services and nodes."""

    async def connect(self, request: Request, resource: Resource, obj: Obj) -> Result: ...


class Endpoints:
    def __init__(
        self,
        handlers: Handlers,
        definitions: Definitions,
        reader: Reader,
        authorizer: Authorizer,
        authenticator: Authenticator,
        issuer: TokenIssuer,
        clock: Clock,
        admission: Chain,
        writes: Writes,
        deletes: Deletes,
    ) -> None:
        """Take `writes` and `deletes` without admission: it runs on the POST itself, not on the writes that follow."""
        self._handlers = handlers
        self._definitions = definitions
        self._reader = reader
        self._authorizer = authorizer
        self._authenticator = authenticator
        self._issuer = issuer
        self._clock = clock
        self._admission = admission
        self._writes = writes
        self._deletes = deletes
        self.connector: Connector | None = None

    def install(self) -> None:
        endpoints = self._handlers.endpoints
        for resource in REVIEWS:
            endpoints[Place(resource, "")] = self._review
        endpoints[Place(GroupResource("", "serviceaccounts"), "token")] = self._token
        endpoints[Place(PODS, "binding")] = self._bind
        endpoints[Place(GroupResource("", "bindings"), "")] = self._bind
        endpoints[Place(PODS, "eviction")] = self._evict
        for name in ("log", "exec", "attach", "portforward", "proxy"):
            endpoints[Place(PODS, name)] = self._connect
        endpoints[Place(SERVICES, "proxy")] = endpoints[Place(NODES, "proxy")] = self._connect

    async def _posted(self, request: Request, gvk: GVK, *, also: tuple[str, ...] = ()) -> Obj:
        """Return the body of a POST that is not stored."""
        if request.info.verb != "create":
            raise MethodNotAllowed()
        node = self._definitions.node_for(gvk)
        if node is None:
            raise NotFound.resource()
        options = write_options(request.query, "CreateOptions")

        def read() -> Obj:
            return self._handlers.bodies.object(request, gvk, node, options.validation, also=also)

        return await aside(request, read)

    async def _review(self, request: Request, resource: Resource) -> Result:
        obj = await self._posted(request, resource.gvk)
        answer = await review(
            resource.gvk.kind,
            obj,
            request.user,
            self._authorizer,
            self._authenticator,
            namespace=request.info.namespace,
            now=self._clock.now(),
        )
        if resource.gvk.kind in _REVIEWED:
            self._track(request, resource, answer)
        return created(answer)

    def _track(self, request: Request, resource: Resource, obj: Obj) -> None:
        """Add managedFields to the posted review, as for every object that a client writes."""
        options = write_options(request.query, "CreateOptions")
        sent = {key: value for key, value in obj.items() if key != "status"}
        entries = update_managers(
            None,
            sent,
            resource.schema(),
            manager=options.manager or manager_of(request),
            api_version=resource.api_version,
            now=rfc3339(self._clock.now()),
        )
        if entries:
            obj.setdefault("metadata", {})["managedFields"] = entries

    async def _token(self, request: Request, resource: Resource) -> Result:
        body = await self._posted(request, _TOKEN_REQUEST)
        info = request.info
        account = self._handlers.reads.entry(resource, info.namespace, info.name).object()
        await self._admit(request, resource, CREATE, body)
        return created(request_token(account, body, self._issuer, self._reader, warnings=request.warnings))

    async def _bind(self, request: Request, resource: Resource) -> Result:
        binding = await self._posted(request, _BINDING)
        _place_posted(binding, resource, request.info.namespace, request.info.name)
        name = request.info.name or (binding.get("metadata") or {}).get("name") or ""
        errors = binding_errors(binding)
        if errors:
            texts = [str(error) for error in errors]
            raise ApiError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
        await self._admit(request, resource, CREATE, binding)
        options = write_options(request.query, "CreateOptions")

        async def change(pod: Obj) -> Obj:
            pod["metadata"].pop("resourceVersion", None)
            return bind(pod, binding, self._clock.now())

        await self._update_pod(request, name, options, change, "binding")
        return ObjectResult(obj=_SUCCESS, status=201)

    async def _update_pod(
        self, request: Request, name: str, options: WriteOptions, change: Change, subresource: str
    ) -> ObjectResult:
        pods = self._handlers.registry.get(_PODS_GVR)
        assert pods is not None
        scope = WriteScope(request, pods, request.info.namespace, options, subresource, owned=True, patch=True)
        return await self._writes.update(scope, name, change)

    async def _evict(self, request: Request, resource: Resource) -> Result:
        eviction = await self._posted(request, _EVICTION, also=("policy/v1beta1",))
        info = request.info
        _place_posted(eviction, resource, info.namespace, info.name)
        options = delete_options(Query({}), eviction.get("deleteOptions"))
        dry_run = options.dry_run or bool(request.query.all("dryRun"))
        await self._admit(request, resource, CREATE, eviction)
        pod = self._handlers.reads.entry(resource, info.namespace, info.name).object()
        check_preconditions(resource, info.name, pod, options)
        options = replace(options, resource_version="")  # the mark below is a write of its own
        await self._spend(request, resource, dry_run=dry_run)
        if not dry_run:

            async def mark(pod: Obj) -> Obj:
                pod["metadata"].pop("resourceVersion", None)
                return mark_evicted(pod, self._clock.now())

            await self._update_pod(request, info.name, _UPDATE, mark, "status")
            await self._deletes.delete(request, resource, info.namespace, info.name, options)
        return ObjectResult(obj=_SUCCESS, status=201)

    async def _spend(self, request: Request, resource: Resource, *, dry_run: bool) -> None:
        """Take one disruption off the pod's budget, if it has one; raises when none is allowed.

        Concurrent evictions conflict often: after a conflict the budget is read again.
        """
        info = request.info
        budgets = self._handlers.registry.get(_BUDGETS_GVR)
        assert budgets is not None
        for _ in range(CONFLICT_TRIES):
            pod = self._handlers.reads.entry(resource, info.namespace, info.name).object()
            labels = pod["metadata"].get("labels")
            matching = [one async for one in self._reader.scan(BUDGETS, info.namespace) if selects(one, labels)]
            budget = evict(pod, matching, now=self._clock.now())
            if budget is None or dry_run:
                return

            async def spend(_live: Obj, spent: Obj = budget) -> Obj:
                return spent

            name = budget["metadata"]["name"]
            try:
                await self._writes.update(WriteScope(request, budgets, info.namespace, _UPDATE, "status"), name, spend)
            except (Conflict, NotFound):
                continue
            return
        raise TooManyRequests("the disruption budget changes too fast to be spent", retry_after=1)

    async def _admit(self, request: Request, resource: Resource, operation: str, obj: Obj) -> None:
        info = request.info
        attributes = Attributes(
            operation, resource, info.subresource, info.namespace, info.name, obj, None, request.user,
            dry_run=bool(request.query.all("dryRun")), warnings=request.warnings,
        )  # fmt: skip
        await self._admission.admit(attributes)
        await self._admission.validate(attributes)

    async def _connect(self, request: Request, resource: Resource) -> Result:
        info = request.info
        if request.query.all("dryRun"):
            raise BadRequest("dryRun is not supported")
        name = info.name
        if info.subresource == "proxy":
            name = _proxied_name(name)
        obj = self._handlers.reads.entry(resource, info.namespace if resource.namespaced else "", name).object()
        if info.subresource == "log":
            LogOptions.parse(request.query, name, self._clock.now())
            chosen_container(obj, request.query.get("container"))
        else:
            await self._admit(request, resource, CONNECT, connect_options(request, resource))
        if self.connector is not None:
            return await self.connector.connect(request, resource, obj)
        if resource.gvk.kind == "Service":
            raise ServiceUnavailable(f'no endpoints available for service "{info.name}"')
        if resource.gvk.kind == "Node":
            raise ServiceUnavailable(f"no kubelet responds for node {name}")
        if info.subresource == "log":
            return RawResult(b"", "", 204)
        raise BadRequest(f"pod {name} does not have a host assigned")


def connect_options(request: Request, resource: Resource) -> Obj:
    """Return the options of a connection, in the form in which admission sees it."""
    info, query = request.info, request.query
    kind = _CONNECT_KINDS.get(info.subresource) or f"{resource.gvk.kind}ProxyOptions"
    options: Obj = {"kind": kind, "apiVersion": "v1"}
    if info.subresource == "proxy":
        return options | ({"path": info.rest} if info.rest else {})
    options |= {flag: True for flag in ("stdin", "stdout", "stderr", "tty") if query.flag(flag)}
    if query.get("container"):
        options["container"] = query.get("container")
    if query.all("command"):
        options["command"] = query.all("command")
    ports = [int(port) for text in query.all("ports") for port in text.split(",") if port.isdigit()]
    return options | ({"ports": ports} if ports else {})


def _proxied_name(name: str) -> str:
    """Return the parts of [scheme:]name[:port]."""
    parts = name.split(":")
    return parts[1] if len(parts) == 3 else parts[0]


def _place_posted(obj: Obj, resource: Resource, namespace: str, name: str) -> None:
    """In place: what was posted to a pod has the pod's name and namespace, or none."""
    if name and (obj.get("metadata") or {}).get("name") not in (None, "", name):
        raise BadRequest(f"name in URL does not match name in {obj['kind']} object")
    place(obj, resource, namespace, name)
