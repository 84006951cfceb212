"""PATCH in its four forms, applied to the live object inside the update loop; the result is decoded like any body."""

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
    Conflict,
    Invalid,
    NotFound,
    UnsupportedMediaType,
    invalid,
)
from karmada.kube.objects.gvk import GVK, GroupResource, GroupVersion
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.patch.apply import apply
from karmada.kube.patch.gotext import go_json, go_value
from karmada.kube.patch.jsonpatch import Dialect, apply_json_patch, check_size, parse_pointer
from karmada.kube.patch.managedfields import SYSTEM, Reset
from karmada.kube.patch.mergepatch import apply_merge_patch
from karmada.kube.patch.strategic import apply_strategic_merge_patch
from karmada.kube.schema.decode import DecodeError, parse_json
from karmada.kube.schema.node import Node
from karmada.kube.server.handlers.aside import aside
from karmada.kube.server.http.bodies import Bodies, repeated, strict_text
from karmada.kube.server.http.options import WriteOptions
from karmada.kube.server.http.request import Request

JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
_ACCEPTED = (JSON_PATCH, MERGE, STRATEGIC, APPLY)
_ACCEPTED_OF_CUSTOM = (JSON_PATCH, MERGE, APPLY)
CREATE_TRIES = 5
_JSON_TYPES = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}


def patch_type(request: Request, *, strategic: bool, custom: bool) -> str:
    """Return the media type of a patch; the routes of built-in resources refuse others without a list."""
    media = request.headers.get("Content-Type", "")
    accepted = _ACCEPTED if strategic else _ACCEPTED_OF_CUSTOM
    if media not in accepted:
        media = media.split(";", 1)[0].strip().lower()
    if media in accepted:
        return media
    if not custom:
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    )


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
        reset: Reset = SYSTEM,
    ) -> None:
        self.request = request
        self._bodies = bodies
        self._gvk = gvk
        self._node = node
        self._options = options
        self._clock = clock
        self._custom = custom
        self._reset = reset
        self._complaints: list[str] = []
        self.media = media
        self._patch: Any = None if media == APPLY else self._prepared(self._parse())
        """Operations, or the tree of a merge; of an apply it is `config`."""

    def _prepared(self, patch: Any) -> Any:
        if self.media == JSON_PATCH:
            return self._operations(patch)
        if self.media == STRATEGIC:
            return _mapping({} if patch is None else patch, "")
        if patch is None:
            raise BadRequest("Invalid JSON Patch")
        return _mapping(patch, "error decoding patch: ")

    def _apply(self, live: Obj) -> Obj:
        if self.media == MERGE:
            merged: Obj = apply_merge_patch(live, copy_json(self._patch))
            return merged
        if self.media == JSON_PATCH:
            return copy_json(_json_patch(live, self._patch))  # it may have put one thing in two places
        return apply_strategic_merge_patch(live, copy_json(self._patch), self._node)

    def _refusal(self, shown: bytes, why: ValueError) -> ApiError:
        """Return the error for a patched object (as JSON) that does not decode."""
        if self.media == APPLY:
            return _undecodable(shown.decode(), str(why))
        if self.media == STRATEGIC:
            return _undecodable(go_value(self._patch), getattr(why, "converting", str(why)))
        touched = _touched(self._patch) if self.media == JSON_PATCH else self._patch
        return _undecodable(_shown(shown, self._node, touched), str(why))

    def _operations(self, patch: Any) -> list[Any]:
        """Return the operations of a JSON patch; a body of null has none."""
        operations = [] if patch is None else patch
        if not isinstance(operations, list):
            wanted = "jsonpatch.Patch" if self._options.validation == "Ignore" else "[]handlers.jsonPatchOp"
            raise BadRequest(f"error decoding patch: {_cannot_unmarshal(operations)} Go value of type {wanted}")
        check_size(operations)
        self._complaints += _unknown_members(operations)
        return [operation or {} for operation in operations]

    def _parse(self) -> Any:
        if self.request.in_process and self.request.obj is not None:
            return self.request.obj
        body = self.request.body
        try:
            patch = parse_json(body)
            self._complaints = repeated(body, patch)
        except ValueError as error:
            raise BadRequest(f"error decoding patch: {error}") from None
        if self.media == JSON_PATCH:
            self._complaints = [f"json patch {text}" for text in self._complaints]
        return patch

    async def change(self, live: Obj) -> Obj:
        """`live` and the result may share unchanged parts; the result shares nothing with the patch itself."""
        return await aside(self.request, self._checked, self._apply, live, live)

    def _checked(self, apply: Callable[[Obj], Obj], to: Obj, known: Obj | None = None) -> Obj:
        """Return the patched object, still of this kind; unknown fields are handled as the client requests.

        An error quotes the result as it was before it was pruned: only then the patch is applied once more.
        """
        patched = self._typed(apply(to))
        try:
            complaints = self._bodies.pruned(patched, self._node, custom=self._custom, known=known)
        except DecodeError as error:
            raise self._refusal(orjson.dumps(self._typed(apply(to))), error) from None
        complaints += self._complaints
        if complaints and self._options.validation == "Strict":
            raise self._refusal(orjson.dumps(self._typed(apply(to))), ValueError(strict_text(complaints)))
        if complaints and self._options.validation == "Warn":
            for text in complaints:
                self.request.warn(text)
        return patched

    def _typed(self, patched: Obj) -> Obj:
        """In place: fill in the type of the endpoint; refuse another."""
        if not isinstance(patched, dict):
            raise BadRequest("the patch does not leave an object")
        api_version = self._gvk.api_version
        if patched.setdefault("apiVersion", api_version) != api_version:
            raise BadRequest("the apiVersion of the object may not be changed by a patch")
        if patched.setdefault("kind", self._gvk.kind) != self._gvk.kind:
            raise BadRequest("the kind of the object may not be changed by a patch")
        return patched

    def refuse_uid_of_nothing(self, config: Obj) -> None:
        """Refuse a uid in an apply of an object that does not exist: such an apply never creates."""
        uid = (config.get("metadata") or {}).get("uid")
        if uid:
            info = self.request.info
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise Conflict.of(GroupResource(info.group, info.resource), info.name, why)

    def config(self) -> Obj:
        """Return the body of a server-side apply."""
        if self.request.in_process and self.request.obj is not None:
            config = copy_json(self.request.obj)
        else:
            config = self._load_config()
        config = _mapping(
            {} if config is None else config, "error decoding YAML: error unmarshaling JSON: while decoding JSON: "
        )
        if (config.get("metadata") or {}).get("managedFields"):
            raise BadRequest("metadata.managedFields must be nil")
        version, kind = config.get("apiVersion") or "", config.get("kind") or ""
        if (version, kind) != (self._gvk.api_version, self._gvk.kind):
            group, number = GroupVersion.parse(version)
            raise BadRequest(f"invalid object type: {group}/{number}, Kind={kind}")
        return config

    def _load_config(self) -> Any:
        from karmada.kube.schema.yamlio import load_strict

        try:
            config, complaints = load_strict(self.request.body)
        except ValueError as error:
            raise BadRequest(f"error decoding YAML: {error}") from None
        for text in complaints:
            if self._options.validation == "Strict":
                raise BadRequest(f"error strict decoding YAML: error converting YAML to JSON: {text}")
            if self._options.validation == "Warn":
                self.request.warn(f"error converting YAML to JSON: {text}")
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
        return self._checked(copy_json, merged)


def _unknown_members(operations: list[Any]) -> list[str]:
    """Return the errors of a strict decoder for a JSON patch; raises for one that is no list of operations."""
    unknown = []
    for index, operation in enumerate(operations):
        if operation is None:
            continue
        if not isinstance(operation, dict):
            what = _cannot_unmarshal(operation)
            raise BadRequest(f"error decoding patch: {what} Go value of type handlers.jsonPatchOp")
        for key, value in operation.items():
            if key in ("op", "path", "from"):
                if value is not None and not isinstance(value, str):
                    what = _cannot_unmarshal(value)
                    raise BadRequest(f"error decoding patch: {what} Go struct field jsonPatchOp.{key} of type string")
            elif key != "value":
                unknown.append(f'json patch unknown field "[{index}].{key}"')
    return unknown


def _json_patch(live: Obj, patch: list[Any]) -> Obj:
    result: Obj = apply_json_patch(live, patch, Dialect.LENIENT)
    return result


def _mapping(patch: Any, prefix: str) -> Obj:
    if not isinstance(patch, dict):
        raise BadRequest(f"{prefix}{_cannot_unmarshal(patch)} Go value of type map[string]interface {{}}")
    return patch


def _cannot_unmarshal(value: Any) -> str:
    return f"json: cannot unmarshal {_JSON_TYPES[type(value)]} into"


def _touched(operations: list[Obj]) -> Obj:
    """Return the tree of keys that the operations went through on the way to what they changed."""
    tree: Obj = {}
    for operation in operations:
        for text in (operation.get("path"), operation.get("from")):
            place = tree
            for part in parse_pointer(text or "", Dialect.LENIENT)[:-1]:
                place = place.setdefault(part, {})
    return tree


def _shown(patched: bytes, node: Node, touched: Obj) -> str:
    return go_json(orjson.loads(patched), node, touched)


def _undecodable(value: str, why: str) -> ApiError:
    """Return the error for a patch whose result is no object of the kind."""
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
    request = patcher.request
    config = await aside(request, patcher.config)

    async def change(live: Obj) -> Obj:
        return await aside(request, lambda: patcher.applied(live, copy_json(config), subresource))

    if create is None:
        return await update(change, True)

    async def make() -> Any:
        patcher.refuse_uid_of_nothing(config)
        return await create(await aside(request, lambda: patcher.applied(None, copy_json(config), "")))

    return await update_or_create(lambda: update(change, True), make)


async def update_or_create(update: Callable[[], Awaitable[Any]], create: Callable[[], Awaitable[Any]]) -> Any:
    """Update; create if it does not exist; update again if another request created it in between."""
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
