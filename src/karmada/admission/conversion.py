"""ConversionReview: bindings from one of their versions to the other."""

from __future__ import annotations

from typing import Any

import orjson

from karmada.api.work_v1alpha1 import convert
from karmada.kube.objects.types import Obj

API_VERSION = "apiextensions.k8s.io/v1"


def answer(body: bytes) -> Obj:
    """Return the review with its response; it never raises."""
    uid: Any = ""
    try:
        request: Obj = orjson.loads(body)["request"]
        uid = request.get("uid") or ""
        desired = request["desiredAPIVersion"]
        converted = [convert(obj, desired) for obj in request.get("objects") or ()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        result: Obj = {"status": "Failure", "message": str(error) or type(error).__name__}
        response: Obj = {"uid": uid, "result": result}
    else:
        response = {"uid": uid, "result": {"status": "Success"}, "convertedObjects": converted}
    return {"apiVersion": API_VERSION, "kind": "ConversionReview", "response": response}
