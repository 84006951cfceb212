"""AdmissionReview: the request that is sent to a webhook, and the validation of its response.

The objects are sent in the version that the webhook's rule names. A webhook on `.../scale` gets the Scale of an object,
although the write changes the object itself; its changes are converted back likewise.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from karmada.kube.kinds.resource import Resource, Scale
from karmada.kube.objects.errors import ApiError, error_from_status
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.matching import NAMESPACES, kind_of
from karmada.kube.server.handlers import versions
from karmada.kube.server.outbound.webhooks import WebhookCallFailed

REVIEW_GROUP = "admission.k8s.io"
KNOWN_VERSIONS = ("v1", "v1beta1")
JSON_PATCH = "JSONPatch"


class InvalidResponse(Exception):
    """The webhook returned an invalid response."""


def pick_version(offered: Iterable[str]) -> str:
    """Return the first version of AdmissionReview that both sides know; "" if there is none."""
    return next((version for version in offered if version in KNOWN_VERSIONS), "")


# The objects


def scale_of(attributes: Attributes) -> Scale | None:
    return attributes.resource.strategy.scale if attributes.subresource == "scale" else None


async def shown(attributes: Attributes, obj: Obj | None, resource: Resource) -> Obj | None:
    """Return an object of the write in the version of `resource`, shared where nothing had to be converted."""
    if obj is None:
        return None
    scale = scale_of(attributes)
    if scale is not None:
        return scale.get(obj)
    if resource.gvr == attributes.resource.gvr:
        return obj
    return await _convert(obj, attributes.resource, resource)


async def taken_back(attributes: Attributes, changed: Obj, resource: Resource) -> Obj:
    """Return the reverse of `shown` for an object that a webhook changed."""
    scale = scale_of(attributes)
    if scale is not None:
        assert attributes.obj is not None
        parent: Obj = orjson.loads(orjson.dumps(attributes.obj))
        scale.set(parent, (changed.get("spec") or {}).get("replicas") or 0)
        return parent
    if resource.gvr == attributes.resource.gvr:
        return changed
    return await _convert(changed, resource, attributes.resource)


async def _convert(obj: Obj, source: Resource, target: Resource) -> Obj:
    stored = await versions.store(source, obj)
    [converted] = await versions.converter(target)([stored])
    if converted.get("apiVersion") != target.gvk.api_version:
        converted = {**converted, "apiVersion": target.gvk.api_version, "kind": target.gvk.kind}
    return converted


# The request


def admission_request(attributes: Attributes, resource: Resource, uid: str) -> Obj:
    """AdmissionRequest without the objects."""
    own, sub = attributes.resource, attributes.subresource
    request: Obj = {
        "uid": uid,
        "kind": _kind(kind_of(resource, sub)),
        "resource": _resource(resource.gvr),
        "requestKind": _kind(kind_of(own, sub)),
        "requestResource": _resource(own.gvr),
        "operation": attributes.operation,
        "userInfo": attributes.user.info(),
        "dryRun": attributes.dry_run,
        "options": attributes.options() or None,
    }
    if sub:
        request["subResource"] = request["requestSubResource"] = sub
    if attributes.name:
        request["name"] = attributes.name
    namespace = attributes.name if own.group_resource == NAMESPACES else attributes.namespace
    if namespace:
        request["namespace"] = namespace
    return request


def review(version: str, request: Obj, obj: Obj | None, old: Obj | None) -> bytes:
    return orjson.dumps(
        {
            "kind": "AdmissionReview",
            "apiVersion": f"{REVIEW_GROUP}/{version}",
            "request": {**request, "object": obj, "oldObject": old},
        }
    )


def _kind(gvk: GVK) -> Obj:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(gvr: GVR) -> Obj:
    return {"group": gvr.group, "version": gvr.version, "resource": gvr.resource}


# The response


@dataclass(frozen=True, slots=True)
class Verdict:
    allowed: bool
    status: Obj | None
    patch: bytes
    patch_type: str
    warnings: tuple[str, ...]


def verdict(answer: Obj, version: str, uid: str, *, mutating: bool) -> Verdict:
    response = answer.get("response")
    if response is None:
        raise InvalidResponse("webhook response was absent")
    if not isinstance(response, dict):
        raise WebhookCallFailed("json: cannot unmarshal the response of the webhook: it must be an object")
    strict = version == "v1"
    if strict:
        _check_envelope(answer, response, uid)
    patch, patch_type = _patch(response), response.get("patchType")
    if strict and mutating:
        _check_patch(patch, patch_type)
    if strict and not mutating:
        if patch:
            raise InvalidResponse("validating webhook may not return response.patch")
        if patch_type is not None:
            raise InvalidResponse("validating webhook may not return response.patchType")
    return Verdict(
        allowed=response.get("allowed") is True,
        status=_status(response.get("status")),
        patch=patch,
        patch_type=str(patch_type or JSON_PATCH),
        warnings=tuple(str(text) for text in response.get("warnings") or ()),
    )


def _check_envelope(answer: Obj, response: Obj, uid: str) -> None:
    if response.get("uid") != uid:
        raise InvalidResponse(f"expected response.uid={_quote(uid)}, got {_quote(response.get('uid') or '')}")
    given = f"{_group_version(answer.get('apiVersion'))}, Kind={answer.get('kind') or ''}"
    wanted = f"{REVIEW_GROUP}/v1, Kind=AdmissionReview"
    if given != wanted:
        raise InvalidResponse(f"expected webhook response of {wanted}, got {given}")


def _group_version(api_version: Any) -> str:
    text = str(api_version or "")
    return text if "/" in text else f"/{text}"


def _check_patch(patch: bytes, patch_type: Any) -> None:
    if patch and patch_type is None:
        raise InvalidResponse("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise InvalidResponse("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise InvalidResponse('webhook returned invalid response.patchType of ""')


def _patch(response: Obj) -> bytes:
    text = response.get("patch")
    if text is None:
        return b""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise WebhookCallFailed(f"illegal base64 data in response.patch: {error}") from error


def _status(status: Any) -> Obj | None:
    return status if isinstance(status, dict) else None


def _quote(text: Any) -> str:
    return orjson.dumps(str(text)).decode()


def denial(name: str, status: Obj | None) -> ApiError:
    """Return the error of a request that the webhook `name` refused."""
    found = dict(status or {})
    denied_by = f"admission webhook {_quote(name)} denied the request"
    explanation = found.get("message") or found.get("reason")
    code = found.get("code")
    found["code"] = code if isinstance(code, int) and code >= 400 else 400
    found["message"] = f"{denied_by}: {explanation}" if explanation else f"{denied_by} without explanation"
    error = error_from_status(found)
    if not found.get("reason"):
        error.status_reason = ""
    return error
