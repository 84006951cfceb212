"""The ResourceInterpreterContext that goes to a webhook, and what of its response is accepted."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import orjson

from karmada.api.interpreter_context import (
    API_VERSION,
    KIND,
    VERSIONS,
    InterpreterResponse,
    Operation,
    ResourceInterpreterContext,
)
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.errors import RequestEntityTooLarge
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import Dialect, JsonPatchError, apply_json_patch, check_size

JSON_PATCH: Final = "JSONPatch"


class CallFailed(InterpreterError):
    """A webhook that could not be called, or whose response cannot be used."""

    def __init__(self, hook_id: str, reason: str) -> None:
        super().__init__(f'Internal error occurred: failed calling webhook "{hook_id}": {reason}')


class NoResponse(Exception):
    """Why there is no response that can be used, in the words that follow the name of the webhook."""


def _invalid(what: str) -> NoResponse:
    return NoResponse(f"received invalid webhook response: {what}")


def request(
    operation: Operation,
    obj: Obj,
    *,
    observed: Obj | None = None,
    replicas: int = 0,
    items: Sequence[Obj] = (),
) -> Obj:
    """Return the request about an object, with a uid of its own."""
    group, version, kind = gvk_of(obj)
    metadata = obj.get("metadata") or {}
    made: Obj = {
        "uid": str(uuid.uuid4()),
        "kind": {"group": group, "version": version, "kind": kind},
        "name": metadata.get("name") or "",
    }
    if metadata.get("namespace"):
        made["namespace"] = metadata["namespace"]
    made |= {"operation": operation, "object": obj, "replicas": replicas}
    if observed is not None:
        made["observedObject"] = observed
    if items:
        made["aggregatedStatus"] = list(items)
    return made


def body(versions: Sequence[str], made: Obj) -> bytes:
    """Return the body of the POST to a webhook that accepts these versions."""
    prefix = "could not create ResourceInterpreterContext objects:"
    if not set(versions) & set(VERSIONS):
        known = ", ".join(VERSIONS)
        raise NoResponse(f"{prefix} webhook does not accept known ResourceInterpreterContext versions ({known})")
    try:
        return orjson.dumps({"kind": KIND, "apiVersion": API_VERSION, "request": made})
    except TypeError as error:
        raise NoResponse(f"{prefix} {error}") from error


def response(answer: Obj, operation: Operation, uid: str) -> InterpreterResponse:
    """Return the response, if it is one to the request with this uid and has what its operation needs."""
    try:
        found = ResourceInterpreterContext.of(answer).response
    except msgspec.ValidationError as error:
        raise NoResponse(f"failed to call webhook: {error}") from error
    if found is None:
        raise _invalid("webhook response was absent")
    if found.uid != uid:
        raise _invalid(f'expected response.uid "{uid}", got "{found.uid}"')
    if not found.successful:
        if found.status is None:
            raise _invalid("webhook require response.status when response.successful is false")
        raise NoResponse(f"webhook call failed, get status code: {found.status.code}, msg: {found.status.message}")
    _check_patch(found)
    _check_needed(found, operation)
    return found


def _check_needed(found: InterpreterResponse, operation: Operation) -> None:
    if operation == "InterpretReplica" and found.replicas is None:
        raise _invalid("webhook returned nil response.replicas")
    if operation == "InterpretStatus" and found.raw_status is None:
        raise _invalid("webhook returned nill response.rawStatus")
    if operation == "InterpretHealth" and found.healthy is None:
        raise _invalid("webhook returned nil response.healthy")


def _check_patch(found: InterpreterResponse) -> None:
    if found.patch_type is None:
        if found.patch:
            raise _invalid("webhook returned nil response.patchType")
        return
    if not found.patch:
        raise _invalid("webhook returned empty response.patch")
    if found.patch_type != JSON_PATCH:
        raise _invalid(f'webhook returned invalid response.patchType of "{found.patch_type}"')


def patched(obj: Obj, found: InterpreterResponse) -> Obj:
    """Return the object with the patch of a response; ValueError with what is wrong with the patch."""
    if not found.patch:
        return obj
    try:
        operations = orjson.loads(base64.b64decode(found.patch, validate=True))
        if operations == []:
            return obj
        if isinstance(operations, list):
            check_size(operations)
        result: Any = apply_json_patch(obj, operations, Dialect.LENIENT)
    except JsonPatchError as error:
        raise ValueError(error.why) from error
    except RequestEntityTooLarge as error:
        raise ValueError(error.message) from error
    except (binascii.Error, orjson.JSONDecodeError) as error:
        raise ValueError(f"it is no JSON patch in base64: {error}") from error
    if not isinstance(result, dict) or not result.get("kind"):
        raise ValueError("it leaves an object without a kind")
    return result
