"""PATCH in its four forms. The patch is made on the live object inside the update loop, then decoded like any body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from karmada.kube.objects.clock import Clock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Invalid,
    NotFound,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    invalid,
)
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.patch.apply import apply
from karmada.kube.patch.jsonpatch import MAX_OPERATIONS, JsonPatchError, apply_json_patch
from karmada.kube.patch.managedfields import Reset
from karmada.kube.patch.mergepatch import apply_merge_patch
from karmada.kube.patch.strategic import apply_strategic_merge_patch
from karmada.kube.schema.decode import parse_json
from karmada.kube.schema.node import Node
from karmada.kube.server.http.bodies import Bodies, repeated, strict_text
from karmada.kube.server.http.options import WriteOptions
from karmada.kube.server.http.request import Request

JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
CREATE_TRIES = 5
_REJECTED = "the server rejected our request due to an error in our request"


def patch_type(request: Request, *, strategic: bool) -> str:
    media = request.headers.get("Content-Type", "").split(";", 1)[0].strip().lower()
    accepted = [JSON_PATCH, MERGE, STRATEGIC, APPLY] if strategic else [JSON_PATCH, MERGE, APPLY]
    if media not in accepted:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
        )
    return media


class Patcher:
    """One PATCH request: `change` is what the update loop calls on each private copy of the live object."""

    def __init__(
        self,
        request: Request,
        bodies: Bodies,
        gvk: GVK,
        node: Node,
        options: WriteOptions,
        clock: Clock,
        media: str,
        *,
        custom: bool,
        reset: Reset | None = None,
    ) -> None:
        self._request = request
        self._bodies = bodies
        self._gvk = gvk
        self._node = node
        self._options = options
        self._clock = clock
        self._custom = custom
        self._reset = reset
        self._complaints: list[str] = []
        self.media = media
        self._apply: Callable[[Obj], Obj] = self._prepare()

    def _prepare(self) -> Callable[[Obj], Obj]:
        if self.media == APPLY:
            return lambda live: live
        patch = self._parse()
        if self.media == JSON_PATCH:
            if not isinstance(patch, list):
                raise BadRequest("error decoding patch: json: cannot unmarshal into a list of operations")
            if len(patch) > MAX_OPERATIONS:
                raise RequestEntityTooLarge(
                    f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
                )
            self._complaints += _unknown_members(patch)
            return lambda live: copy_json(_json_patch(live, patch))  # it may have put one thing in two places
        if not isinstance(patch, dict):
            raise BadRequest("error decoding patch: json: cannot unmarshal into an object")
        if self.media == MERGE:
            return lambda live: apply_merge_patch(live, copy_json(patch))
        return lambda live: apply_strategic_merge_patch(live, copy_json(patch), self._node)

    def _parse(self) -> Any:
        if self._request.in_process and self._request.obj is not None:
            return self._request.obj
        body = self._request.body
        try:
            patch = parse_json(body)
        except ValueError as error:
            raise BadRequest(f"error decoding patch: {error}") from None
        self._complaints = repeated(body, patch)
        if self.media == JSON_PATCH:
            self._complaints = [f"json patch {text}" for text in self._complaints]
        return patch

    async def change(self, live: Obj) -> Obj:
        """`live` and the result may share what the patch left alone; nothing of the patch itself is in the result."""
        return self._checked(self._apply(live), live)

    def _checked(self, patched: Obj, live: Obj | None = None) -> Obj:
        """The result must still be an object of this kind; unknown fields are handled as the client asked."""
        if not isinstance(patched, dict):
            raise BadRequest("the patch does not leave an object")
        for key, wanted in (("apiVersion", self._gvk.api_version), ("kind", self._gvk.kind)):
            if patched.setdefault(key, wanted) != wanted:
                raise BadRequest(f"the {key} of the object may not be changed by a patch")
        strict = self._options.validation == "Strict"
        shown = orjson.dumps(patched) if strict else b""
        complaints = self._bodies.normalize(patched, self._gvk, self._node, custom=self._custom, known=live)
        complaints += self._complaints
        if complaints and strict:
            raise _nameless_invalid(shown.decode(), strict_text(complaints))
        if complaints and self._options.validation == "Warn":
            for text in complaints:
                self._request.warn(text)
        return patched

    def config(self) -> Obj:
        """The body of a server-side apply."""
        if self._request.in_process and self._request.obj is not None:
            config = copy_json(self._request.obj)
        else:
            config = self._load_config()
        if not isinstance(config, dict):
            raise BadRequest("error decoding YAML: the body is not an object")
        if (config.get("metadata") or {}).get("managedFields"):
            raise BadRequest("metadata.managedFields must be nil")
        version, kind = config.get("apiVersion"), config.get("kind")
        if version != self._gvk.api_version:
            raise BadRequest(
                "Incorrect version specified in apply patch. "
                f"Specified patch version: {version}, expected: {self._gvk.api_version}"
            )
        if kind != self._gvk.kind:
            raise BadRequest(f"Incorrect kind specified in apply patch: {kind}, expected: {self._gvk.kind}")
        return config

    def _load_config(self) -> Any:
        from karmada.kube.schema.yamlio import load_strict

        try:
            config, complaints = load_strict(self._request.body)
        except ValueError as error:
            raise BadRequest(f"error decoding YAML: {error}") from None
        for text in complaints:
            if self._options.validation == "Strict":
                raise BadRequest(f"error strict decoding YAML: error converting YAML to JSON: {text}")
            if self._options.validation == "Warn":
                self._request.warn(f"error converting YAML to JSON: {text}")
        return config

    def applied(self, live: Obj | None, config: Obj, subresource: str) -> Obj:
        merged = apply(
            live,
            config,
            self._node,
            manager=self._options.manager,
            force=bool(self._options.force),
            api_version=self._gvk.api_version,
            now=rfc3339(self._clock.now()),
            subresource=subresource,
            custom=self._custom,
            reset=self._reset,
        )
        return self._checked(copy_json(merged))


def _unknown_members(operations: list[Any]) -> list[str]:
    """What a strict reader says of a JSON patch; raises for one that is no list of operations."""
    unknown = []
    for index, operation in enumerate(operations):
        if not isinstance(operation, dict):
            raise BadRequest("error decoding patch: json: cannot unmarshal into an operation")
        for key, value in operation.items():
            if key in ("op", "path", "from"):
                if not isinstance(value, str):
                    raise BadRequest(f"error decoding patch: json: cannot unmarshal into {key} of type string")
            elif key != "value":
                unknown.append(f'json patch unknown field "[{index}].{key}"')
    return unknown


def _json_patch(live: Obj, patch: list[Any]) -> Obj:
    try:
        result: Obj = apply_json_patch(live, patch)
    except JsonPatchError:
        raise Invalid(_REJECTED) from None
    except ValueError as error:
        raise BadRequest(f"error decoding patch: {error}") from None
    return result


def _nameless_invalid(value: str, why: str) -> ApiError:
    error = invalid("patch", value, why)
    return Invalid(f' "" is invalid: {error}', details={"causes": [error.cause()]})


async def patch_or_create(
    patcher: Patcher,
    update: Callable[[Callable[[Obj], Awaitable[Obj]], bool], Awaitable[Any]],
    create: Callable[[Obj], Awaitable[Any]] | None,
    subresource: str,
) -> Any:
    """Run a patch; a server-side apply of something that does not exist creates it (where `create` allows)."""
    if patcher.media != APPLY:
        return await update(patcher.change, False)
    config = patcher.config()

    async def change(live: Obj) -> Obj:
        return patcher.applied(live, copy_json(config), subresource)

    if create is None:
        return await update(change, True)

    async def make() -> Any:
        return await create(patcher.applied(None, copy_json(config), ""))

    return await update_or_create(lambda: update(change, True), make)


async def update_or_create(update: Callable[[], Awaitable[Any]], create: Callable[[], Awaitable[Any]]) -> Any:
    """Update, or create what is not there, or update what another request created in between."""
    for _ in range(CREATE_TRIES):
        try:
            return await update()
        except NotFound as error:
            missing = error
        try:
            return await create()
        except AlreadyExists:
            continue
    raise missing
