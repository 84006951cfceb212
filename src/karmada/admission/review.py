"""The rules as a webhook: an AdmissionReview in, an AdmissionReview out.

What a mutating hook did to the object goes back as a JSON patch. A review that cannot be read is answered with a
refusal, too: a kube-apiserver understands nothing else.
"""

from __future__ import annotations

import base64
import traceback
from typing import Any

import orjson

from karmada.admission.context import BAD_REQUEST, DELETE, Context, Refusal, Settings
from karmada.admission.hooks import Hook, run_mutating, run_validating
from karmada.admission.not_acted_on import warning_of
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import diff
from karmada.kube.runtime.logging import get_logger

API_VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
_log = get_logger("admission.review")


async def answer(hook: Hook, body: bytes, settings: Settings) -> Obj:
    """Return the review with its response; it never raises."""
    review: Obj = {"apiVersion": API_VERSIONS[0], "kind": "AdmissionReview"}
    uid = ""
    try:
        received = _review_of(body)
        review["apiVersion"] = received["apiVersion"]
        uid = received["request"].get("uid") or ""
        response = await respond(hook, received["request"], settings)
    except Refusal as refusal:
        response = {"allowed": False, "status": refusal.status()}
    except Exception as error:  # noqa: BLE001 - an answer is owed whatever happened; what did is logged
        _log.exception("A hook failed", error, webhook=hook.name, path=hook.path)
        last = traceback.format_exception_only(error)[-1].strip()
        response = {"allowed": False, "status": Refusal.failure(last).status()}
    return {**review, "response": {"uid": uid, **response}}


def _review_of(body: bytes) -> Obj:
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refusal.failure(f"couldn't get version/kind; json parse error: {error}", BAD_REQUEST) from error
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        raise Refusal.failure("expected an AdmissionReview", BAD_REQUEST)
    if review.get("apiVersion") not in API_VERSIONS:
        text = f"AdmissionReview of an unknown version: {review.get('apiVersion')}"
        raise Refusal.failure(text, BAD_REQUEST)
    if not isinstance(review.get("request"), dict):
        raise Refusal.failure("the AdmissionReview has no request", BAD_REQUEST)
    return review


async def respond(hook: Hook, request: Obj, settings: Settings) -> Obj:
    """Return the response to an AdmissionRequest, without its uid. Raises Refusal."""
    context = Context(
        settings,
        operation=request.get("operation") or "",
        namespace=request.get("namespace") or "",
        dry_run=bool(request.get("dryRun")),
    )
    obj, old = _object(request, "object"), _object(request, "oldObject")
    response: Obj = {"allowed": True, "status": {"code": 200}}
    try:
        if context.operation not in hook.operations or request.get("subResource"):
            return response
        if hook.mutate is not None:
            response |= _patch(hook, _needed(obj), old, context)
        else:
            deleting = context.operation == DELETE
            await run_validating(hook, {} if deleting else _needed(obj), _needed(old) if deleting else old, context)
            if warning := warning_of(hook.resource, settings):
                context.warn(warning)
    except Refusal as refusal:
        response = {"allowed": False, "status": refusal.status()}
    return {**response, "warnings": context.warnings} if context.warnings else response


def _object(request: Obj, key: str) -> Obj | None:
    found: Any = request.get(key)
    if found is not None and not (isinstance(found, dict) and isinstance(found.get("metadata"), dict)):
        raise Refusal.failure(f"request.{key} is not an object", BAD_REQUEST)
    return found


def _needed(obj: Obj | None) -> Obj:
    if obj is None:
        raise Refusal.failure("there is no content to decode", BAD_REQUEST)
    return obj


def _patch(hook: Hook, obj: Obj, old: Obj | None, context: Context) -> Obj:
    changed = copy_json(obj)
    run_mutating(hook, changed, old, context)
    operations = diff(obj, changed)
    if not operations:
        return {}
    return {"patchType": "JSONPatch", "patch": base64.b64encode(orjson.dumps(operations)).decode()}
