"""Admission webhooks: other servers that may change or refuse a write.

The configurations are compiled when they change, and which webhooks match a sort of write is cached until then, so that
a write without webhooks costs one lookup. Mutating webhooks run one after the other, each on the result of the one
before; when a later one changed the object, earlier ones with reinvocationPolicy IfNeeded are called once more, in the
second round of the chain. Validating ones run concurrently on the final object.

Whether a write fails when a webhook is unreachable or returns an invalid response is up to its failurePolicy.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import orjson

from karmada.kube.kinds.resource import Reader, Resource
from karmada.kube.objects.errors import ApiError, BadRequest, Forbidden, InternalError
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import Dialect, JsonPatchError, apply_json_patch, check_size
from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.admission.conditions import Conditions, EvaluationFailed, bindings_of
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.matching import GROUP, Criteria, Request, exempt
from karmada.kube.server.admission.mutation import take
from karmada.kube.server.admission.plugin import BuiltinPlugin
from karmada.kube.server.admission.review import (
    JSON_PATCH,
    InvalidResponse,
    Verdict,
    admission_request,
    denial,
    pick_version,
    review,
    shown,
    taken_back,
    verdict,
)
from karmada.kube.server.auth.rbac import Authorizer
from karmada.kube.server.outbound.webhooks import WebhookCallFailed, WebhookClient, parse_answer
from karmada.kube.server.registry import Registry
from karmada.kube.server.watchcache.derived import Followed

MUTATING = GroupResource(GROUP, "mutatingwebhookconfigurations")
VALIDATING = GroupResource(GROUP, "validatingwebhookconfigurations")
DEFAULT_SECONDS = 10.0
_SAFE_ON_DRY_RUN = ("None", "NoneOnDryRun")
_log = get_logger("admission.webhooks")


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    name: str
    criteria: Criteria
    conditions: Conditions
    client_config: Obj
    seconds: float
    fail_open: bool
    safe_on_dry_run: bool
    version: str
    reinvoke: bool

    @classmethod
    def of(cls, raw: Obj) -> Hook:
        return cls(
            name=raw.get("name") or "",
            criteria=Criteria.of(raw),
            conditions=Conditions.of(raw.get("matchConditions")),
            client_config=raw.get("clientConfig") or {},
            seconds=float(raw.get("timeoutSeconds") or DEFAULT_SECONDS),
            fail_open=raw.get("failurePolicy") == "Ignore",
            safe_on_dry_run=raw.get("sideEffects") in _SAFE_ON_DRY_RUN,
            version=pick_version(raw.get("admissionReviewVersions") or ()),
            reinvoke=raw.get("reinvocationPolicy") == "IfNeeded",
        )


def compile_hooks(configurations: list[Obj]) -> tuple[Hook, ...]:
    """Return all webhooks in the order in which they are called."""
    ordered = sorted(configurations, key=lambda c: str(c["metadata"]["name"]))
    return tuple(Hook.of(raw) for configuration in ordered for raw in configuration.get("webhooks") or ())


class Invocation(NamedTuple):
    """A webhook and the version of the resource that its rule matches."""

    hook: Hook
    resource: Resource


class ReviewRequest(NamedTuple):
    """An AdmissionReview to send, its objects in the webhook's version."""

    invocation: Invocation
    request: Obj
    obj: Obj | None
    old: Obj | None


class _CallFailed(Exception):
    """A failed call, to be handled by the failurePolicy."""


class _Webhooks(BuiltinPlugin):
    waits = True
    mutating: ClassVar[bool]
    configurations: ClassVar[GroupResource]

    def __init__(
        self, reader: Reader, registry: Registry, client: WebhookClient, authorizer: Authorizer | None = None
    ) -> None:
        super().__init__(reader)
        self._registry = registry
        self._client = client
        self._authorizer = authorizer
        self._hooks = Followed(reader, self.configurations, compile_hooks)
        self.depends_on = (*self._hooks.sources, registry)
        self._known: dict[tuple[str, Resource, str, bool], tuple[Invocation, ...]] = {}
        self._known_for: tuple[int, int] = (-1, -1)

    def handles(self, attributes: Attributes) -> bool:
        return bool(self._matched(attributes))

    def _matched(self, attributes: Attributes) -> tuple[Invocation, ...]:
        """Return the webhooks whose rules match."""
        hooks = self._hooks.get()
        current = (self._hooks.generation, self._registry.generation)
        if current != self._known_for:
            self._known.clear()
            self._known_for = current
        key = (attributes.operation, attributes.resource, attributes.subresource, bool(attributes.namespace))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = () if exempt(attributes) else self._matching(hooks, Request(*key))
        return known

    def _matching(self, hooks: tuple[Hook, ...], request: Request) -> tuple[Invocation, ...]:
        found = ((hook, hook.criteria.resource_for(request, self._registry)) for hook in hooks)
        return tuple(Invocation(hook, resource) for hook, resource in found if resource is not None)

    async def _review_request(self, attributes: Attributes, invocation: Invocation) -> ReviewRequest | None:
        """Return the review to send to the webhook; None if its selectors or matchConditions do not match."""
        hook, resource = invocation
        if not hook.criteria.selects(attributes, self.reader):
            return None
        obj = await shown(attributes, attributes.obj, resource)
        old = await shown(attributes, attributes.old, resource)
        request = admission_request(attributes, resource, str(uuid.uuid4()))
        if hook.conditions:
            try:
                if not hook.conditions.hold(bindings_of(attributes, request, obj, old, self._authorizer)):
                    return None
            except EvaluationFailed as error:
                if hook.fail_open:
                    return None
                raise Forbidden.of(attributes.group_resource, attributes.name, str(error)) from error
        return ReviewRequest(invocation, request, obj, old)

    async def _invoke(self, attributes: Attributes, pending: ReviewRequest) -> Verdict | None:
        """Call the webhook; None if the call failed and failurePolicy is Ignore. A refusal is raised."""
        hook = pending.invocation.hook
        if attributes.dry_run and not hook.safe_on_dry_run:
            raise BadRequest(f'admission webhook "{hook.name}" does not support dry run')
        try:
            answer = await self._call(hook, pending)
        except _CallFailed as error:
            text = f'failed calling webhook "{hook.name}": {error}'
            if not hook.fail_open:
                raise InternalError.of(text) from error
            _log.warning("Failed calling webhook, failing open", webhook=hook.name, err=str(error))
            return None
        for warning in answer.warnings:
            attributes.warnings.append(warning)
        if not answer.allowed:
            raise denial(hook.name, answer.status)
        return answer

    async def _call(self, hook: Hook, pending: ReviewRequest) -> Verdict:
        if not hook.version:
            why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise _CallFailed(f"could not create admission objects: {why}")
        body = review(hook.version, pending.request, pending.obj, pending.old)
        try:
            answer = parse_answer(await self._client.call(hook.client_config, body, timeout=hook.seconds))
            return verdict(answer, hook.version, pending.request["uid"], mutating=self.mutating)
        except WebhookCallFailed as error:
            raise _CallFailed(f"failed to call webhook: {error}") from error
        except InvalidResponse as error:
            raise _CallFailed(f"received invalid webhook response: {error}") from error


class MutatingWebhooks(_Webhooks):
    name = "MutatingAdmissionWebhook"
    mutating = True
    configurations = MUTATING

    async def admit(self, attributes: Attributes) -> None:
        rounds = attributes.count_rounds()
        for invocation in self._matched(attributes):
            hook = invocation.hook
            if rounds.takes(hook):
                changed = await self._mutate(attributes, invocation)
                rounds.took(hook, changed=changed, reinvocable=hook.reinvoke)

    async def _mutate(self, attributes: Attributes, invocation: Invocation) -> bool:
        """Return whether the webhook changed the object."""
        pending = await self._review_request(attributes, invocation)
        if pending is None:
            return False
        answer = await self._invoke(attributes, pending)
        if answer is None or not answer.patch:
            return False
        hook = invocation.hook
        if answer.patch_type != JSON_PATCH:
            text = f'failed calling webhook "{hook.name}": unsupported patch type "{answer.patch_type}"'
            if hook.fail_open:
                return False
            raise InternalError.of(text)
        operations = _operations(answer.patch)
        if not operations:
            return False
        if attributes.obj is None or pending.obj is None:
            what = "attempted to modify the object, which is not supported for this operation"
            raise InternalError.of(f'admission webhook "{hook.name}" {what}')
        patched = _patched(pending.obj, operations)
        return take(attributes, await taken_back(attributes, patched, invocation.resource))


class ValidatingWebhooks(_Webhooks):
    name = "ValidatingAdmissionWebhook"
    mutating = False
    configurations = VALIDATING

    async def validate(self, attributes: Attributes) -> None:
        found = [await self._review_request(attributes, invocation) for invocation in self._matched(attributes)]
        reviews = [pending for pending in found if pending is not None]
        if len(reviews) == 1:
            await self._invoke(attributes, reviews[0])
        elif reviews:
            await self._invoke_all(attributes, reviews)

    async def _invoke_all(self, attributes: Attributes, reviews: list[ReviewRequest]) -> None:
        """Call all webhooks concurrently; raises the first refusal."""
        refusals: list[ApiError] = []

        async def invoke(pending: ReviewRequest) -> None:
            try:
                await self._invoke(attributes, pending)
            except ApiError as refusal:
                refusals.append(refusal)

        async with asyncio.TaskGroup() as group:
            for pending in reviews:
                group.create_task(invoke(pending))
        if refusals:
            raise refusals[0]


def _operations(patch: bytes) -> list[Obj]:
    try:
        operations = orjson.loads(patch)
    except orjson.JSONDecodeError as error:
        raise InternalError.of(str(error)) from error
    if not isinstance(operations, list):
        raise InternalError.of("json: cannot unmarshal the patch: it must be an array of operations")
    check_size(operations)
    return operations


def _patched(obj: Obj, operations: list[Obj]) -> Any:
    try:
        return apply_json_patch(obj, operations, Dialect.LENIENT)
    except JsonPatchError as error:
        raise InternalError.of(error.why) from error
    except ValueError as error:
        raise InternalError.of(str(error)) from error
