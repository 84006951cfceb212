"""The audit events of a request: one for each stage it passes and its policy wants, to every sink.

A request that no rule wants has no trail and costs one look at the rules. Bodies are read only at the levels that
record them, when the request is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.times import micro_time
from karmada.kube.objects.types import Obj
from karmada.kube.server.audit.bodies import parse_body, shown
from karmada.kube.server.audit.config import AuditConfig
from karmada.kube.server.audit.interface import Sent
from karmada.kube.server.audit.policy import API_VERSION, COMPLETE, PANIC, RECEIVED, STARTED, Level, Plan, Policy
from karmada.kube.server.auth.user import User
from karmada.kube.server.http.list_encoding import list_object
from karmada.kube.server.http.request import Request, RequestInfo
from karmada.kube.server.http.results import ListResult, ObjectResult, Result

_LONGEST_ID = 64
Decode = Callable[[Request], Any]
"""The body of a request in a form that is neither JSON nor YAML."""


class Sink(Protocol):
    name: str
    failed: int
    """Events that were lost."""

    def write(self, event: Obj) -> None: ...

    async def close(self) -> None: ...


class Auditor:
    def __init__(self, policy: Policy, sinks: Sequence[Sink], clock: Clock, decode: Decode) -> None:
        self._policy = policy
        self._sinks = tuple(sinks)
        self.clock = clock
        self.decode = decode
        self._events = 0

    def begin(self, sent: Sent, info: RequestInfo, caller: User, audit_id: str, seconds: float) -> Trail | None:
        plan = self._policy.plan(caller, info)
        if plan.level is Level.NONE:
            return None
        trail = Trail(self, plan, sent, info, caller, audit_id, self.clock.now() - seconds)
        trail.emit(RECEIVED)
        return trail

    def refuse(self, sent: Sent, info: RequestInfo, audit_id: str, seconds: float, code: int) -> None:
        """Write one event, as Kubernetes does: ResponseStarted, whatever stages are omitted, with the attempt."""
        plan = self._policy.plan(None, info)._replace(omit_stages=frozenset(), confidential=False)
        if plan.level is Level.NONE:
            return
        trail = Trail(self, plan, sent, info, None, audit_id, self.clock.now() - seconds)
        trail.fail({"message": _attempted(sent)})
        trail.started(code)

    def write(self, event: Obj) -> None:
        self._events += 1
        for sink in self._sinks:
            sink.write(event)

    async def close(self) -> None:
        for sink in self._sinks:
            await sink.close()

    def counts(self) -> list[tuple[dict[str, str], float]]:
        return [({}, self._events)]

    def losses(self) -> list[tuple[dict[str, str], float]]:
        return [({"plugin": sink.name}, sink.failed) for sink in self._sinks]


class Trail:
    __slots__ = ("_auditor", "_base", "_failure", "_plan", "_response", "caller", "info", "request")

    def __init__(
        self, auditor: Auditor, plan: Plan, sent: Sent, info: RequestInfo, caller: User | None, audit_id: str, at: float
    ) -> None:
        self._auditor = auditor
        self._plan = plan
        self.info = info
        self.caller = caller
        self.request: Request | None = None
        """Set once it is known as whom the caller acts."""
        self._response: Result | None = None
        self._failure: Obj | None = None
        self._base: Obj = {
            "kind": "Event",
            "apiVersion": API_VERSION,
            "level": plan.level.word,
            "auditID": _text(audit_id)[:_LONGEST_ID],
            "stage": "",
            "requestURI": _text(sent.uri),
            "verb": info.verb,
            "user": caller.info() if caller is not None else {},
            "sourceIPs": [sent.remote] if sent.remote else [],
            "userAgent": _text(sent.headers.get("User-Agent", "")),
            "requestReceivedTimestamp": micro_time(at),
        }
        if info.is_resource:
            self._base["objectRef"] = _reference(info)

    def started(self, code: int) -> None:
        """Record that the head of a long response is out."""
        self.emit(STARTED, code)

    def respond(self, result: Result) -> None:
        self._response = result

    def fail(self, status: Obj) -> None:
        """Record the Status that the request is answered with."""
        self._failure = status

    def finish(self, code: int, *, panic: bool = False) -> None:
        self.emit(PANIC if panic else COMPLETE, code)

    def emit(self, stage: str, code: int = 0) -> None:
        if stage in self._plan.omit_stages:
            return
        event = {**self._base, "stage": stage, "stageTimestamp": micro_time(self._auditor.clock.now())}
        if code:
            event["responseStatus"] = self._status(code)
        if self.request is not None:
            self._add_request(event, self.request)
            if stage == COMPLETE:
                self._add_bodies(event, self.request)
        self._auditor.write(event)

    def _status(self, code: int) -> Obj:
        status: Obj = {"metadata": {}, "code": code}
        failure = self._failure
        if failure is not None:
            shown_keys = ("status", "reason") if self._plan.confidential else ("status", "reason", "message")
            status |= {key: failure[key] for key in shown_keys if failure.get(key)}
            if self._plan.level > Level.METADATA and failure.get("details"):
                status["details"] = failure["details"]
        return status

    def _add_request(self, event: Obj, request: Request) -> None:
        if request.user is not self.caller:
            event["impersonatedUser"] = request.user.info()
        if event.get("responseStatus") is not None:
            decision = "allow" if request.authorized else "forbid"
            event["annotations"] = {"authorization.k8s.io/decision": decision, **request.annotations}

    def _add_bodies(self, event: Obj, request: Request) -> None:
        plan = self._plan
        if plan.level < Level.REQUEST or not self.info.is_resource:
            return
        body = self._body(request)
        if body is not None:
            event["requestObject"] = shown(body, omit_managed_fields=plan.omit_managed_fields)
        if plan.level >= Level.REQUEST_RESPONSE:
            answer = self._failure if self._failure is not None else _answer(self._response)
            if answer is not None:
                event["responseObject"] = shown(answer, omit_managed_fields=plan.omit_managed_fields)

    def _body(self, request: Request) -> Any:
        if not request.body:
            return request.obj  # of a request in-process
        body = parse_body(request.body, request.headers.get("Content-Type", ""))
        return self._auditor.decode(request) if body is None else body


def _attempted(sent: Sent) -> str:
    """Return which credentials were shown; never what they are."""
    authorization = sent.headers.get("Authorization", "").strip().lower()
    methods = [word for word in ("basic", "bearer") if authorization.startswith(f"{word} ")]
    if sent.certificate:
        methods.append("x509")
    if not methods:
        return "Authentication failed, no credentials provided"
    return f"Authentication failed, attempted: {', '.join(methods)}"


def _answer(result: Result | None) -> Obj | None:
    if isinstance(result, ObjectResult):
        return result.object()
    return list_object(result) if isinstance(result, ListResult) else None


def _text(value: str) -> str:
    """Headers and paths may hold bytes that are no text."""
    return value.encode("utf-8", "replace").decode()


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


def open_auditor(config: AuditConfig, clock: Clock, decode: Decode) -> Auditor | None:
    """Return None when nobody wants events; OSError or ValueError for a place that cannot be used."""
    if not config.enabled:
        return None
    sinks: list[Sink] = []
    if config.log_path is not None:
        from karmada.kube.server.audit.logfile import LogFile

        limits = {"max_bytes": config.max_megabytes << 20, "max_backups": config.max_backups}
        sinks.append(LogFile(config.log_path, clock, max_days=config.max_days, **limits))
    if config.webhook is not None:
        from karmada.kube.server.audit.webhook import WebhookSink

        sinks.append(WebhookSink(config.webhook, clock))
    return Auditor(config.policy, sinks, clock, decode)
