"""Conversion of custom resources by webhook: one ConversionReview for all objects that need it.

The webhook gets objects and a version and must answer as many objects, in the same order, each in that version, each
still the same object: of metadata only labels and annotations may change. Whatever else happens is a failure of the
whole call. How to reach the webhook is the caller's business (`Call`).
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from karmada.kube.objects.errors import ApiError, InternalError
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

Target = str | Obj
"""A URL, or a service: {"namespace", "name", "path", "port"}."""
Call = Callable[[Target, bytes, bytes, float], Awaitable[bytes]]
"""(target, CA bundle as PEM, body, timeout in seconds) → the body of the answer; raises on any failure."""

TIMEOUT = 30.0
_SUPPORTED = ("v1", "v1beta1")
_FREE_METADATA = frozenset({"labels", "annotations"})


class _Failure(Exception):
    """A response of the webhook is wrong."""


async def convert_objects(crd: Obj, objects: list[Obj], desired_api_version: str, call: Call) -> list[Obj]:
    """Return the objects in another version, in the same order; those that are already in it stay as they are.

    Raises InternalError when the webhook cannot be reached or answers nonsense.
    """
    todo = [obj for obj in objects if obj.get("apiVersion") != desired_api_version]
    if not todo:
        return objects
    if (crd["spec"].get("conversion") or {}).get("strategy") != "Webhook":
        return [
            obj if obj.get("apiVersion") == desired_api_version else _renamed(obj, desired_api_version)
            for obj in objects
        ]
    converted = iter(await _call_webhook(crd, todo, desired_api_version, call))
    return [obj if obj.get("apiVersion") == desired_api_version else next(converted) for obj in objects]


def _renamed(obj: Obj, api_version: str) -> Obj:
    return {**obj, "apiVersion": api_version}


async def _call_webhook(crd: Obj, objects: list[Obj], desired: str, call: Call) -> list[Obj]:
    webhook: Obj = crd["spec"]["conversion"]["webhook"]
    client: Obj = webhook["clientConfig"]
    try:
        version = review_version(webhook)
        uid = str(uuid.uuid4())
        body = orjson.dumps(conversion_review(version, uid, desired, objects))
        target: Target = client["url"] if client.get("url") else client["service"]
        answer = await call(target, ca_bundle(client), body, TIMEOUT)
        return read_response(answer, version, uid, desired, objects)
    except _Failure as failure:
        raise _failed(objects[0], str(failure)) from None
    except ApiError as error:
        raise _failed(objects[0], error.message) from error
    except (OSError, TimeoutError, ValueError) as error:
        raise _failed(objects[0], str(error) or type(error).__name__) from error


def _failed(obj: Obj, why: str) -> InternalError:
    gvk = GVK.parse(str(obj.get("apiVersion") or ""), str(obj.get("kind") or ""))
    return InternalError(f"conversion webhook for {gvk} failed: {why}", details={"causes": [{"message": why}]})


def ca_bundle(client: Obj) -> bytes:
    """Return the PEM of a clientConfig's caBundle, which JSON carries in base64; empty: the system's authorities."""
    return base64.b64decode(client.get("caBundle") or "")


def review_version(webhook: Obj) -> str:
    """Return the first version of ConversionReview that the webhook and this server both speak."""
    for version in webhook.get("conversionReviewVersions") or ():
        if version in _SUPPORTED:
            return str(version)
    raise _Failure("no supported conversion review versions")


def conversion_review(version: str, uid: str, desired: str, objects: list[Obj]) -> Obj:
    return {
        "kind": "ConversionReview",
        "apiVersion": f"apiextensions.k8s.io/{version}",
        "request": {"uid": uid, "desiredAPIVersion": desired, "objects": objects},
    }


def read_response(answer: bytes, version: str, uid: str, desired: str, objects: list[Obj]) -> list[Obj]:
    """Return the converted objects of a response, checked against the request."""
    try:
        review = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise _Failure(f"invalid response: {error}") from None
    if not isinstance(review, dict):
        raise _Failure(f"invalid response type: expected ConversionReview, got {type(review).__name__}")
    api_version = f"apiextensions.k8s.io/{version}"
    if review.get("kind") != "ConversionReview" or review.get("apiVersion") != api_version:
        given = f"{review.get('apiVersion') or ''}, Kind={review.get('kind') or ''}"
        raise _Failure(f"expected webhook response of {api_version}, Kind=ConversionReview, got {given}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise _Failure("no response provided")
    if response.get("uid") != uid:
        raise _Failure(f'expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    result = response.get("result") or {}
    if result.get("status") != "Success":
        raise _Failure(_refusal(result))
    converted = response.get("convertedObjects") or []
    if len(converted) != len(objects):
        raise _Failure(f"webhook returned {len(converted)} objects, expected {len(objects)}")
    return [_checked(index, obj, objects[index], desired) for index, obj in enumerate(converted)]


def _refusal(result: Obj) -> str:
    if result.get("message"):
        return str(result["message"])
    if result.get("status") == "Failure":
        return "webhook refused without a message"
    return f'response.result.status was "{result.get("status") or ""}", not "Success"'


def _checked(index: int, converted: Any, original: Obj, desired: str) -> Obj:
    place = f"invalid converted object at index {index}"
    if not isinstance(converted, dict):
        raise _Failure(f"{place}: not an object")
    if converted.get("apiVersion") != desired:
        given = converted.get("apiVersion") or ""
        raise _Failure(f"{place}: invalid apiVersion (expected {desired}, received {given})")
    if converted.get("kind") != original.get("kind"):
        given = converted.get("kind") or ""
        raise _Failure(f"{place}: invalid kind (expected {original.get('kind')}, received {given})")
    return {**converted, "metadata": _metadata(place, converted.get("metadata"), original.get("metadata") or {})}


def _metadata(place: str, given: Any, original: Obj) -> Obj:
    """Return the original metadata with the webhook's labels and annotations; identity must not have changed."""
    if not isinstance(given, dict):
        raise _Failure(f"{place}: invalid metadata of type {type(given).__name__} in input object")
    for key in ("name", "namespace", "uid"):
        if (given.get(key) or "") != (original.get(key) or ""):
            raise _Failure(
                f"{place}: invalid metadata.{key} (expected {original.get(key) or ''}, received {given.get(key) or ''})"
            )
    made = {key: value for key, value in original.items() if key not in _FREE_METADATA}
    for key in ("labels", "annotations"):
        entries = given.get(key)
        if entries:
            if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
                raise _Failure(f"{place}: invalid metadata.{key}")
            made[key] = entries
    return made
