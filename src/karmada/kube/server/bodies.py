"""Request bodies: JSON, YAML or protobuf in, a checked object of the endpoint's kind out.

Unknown fields never reach the store; whether they are a warning, an error or silence is the client's fieldValidation.
"""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError, BadRequest, UnsupportedMediaType
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.decode import DecodeError, duplicate_fields, normalize, parse_json, strict_errors_text
from karmada.kube.schema.node import Node
from karmada.kube.server.negotiation import ACCEPTED, JSON, PROTOBUF, YAML
from karmada.kube.server.request import Request

_YAML_TYPES = (YAML, "application/x-yaml", "text/yaml")


class Bodies:
    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    def parse(self, request: Request, gvk: GVK, *, custom: bool = False) -> tuple[Any, list[str]]:
        """The body as JSON data of our own, and the paths of fields that stood twice in it."""
        if request.in_process and request.obj is not None:
            return copy_json(request.obj), []
        media = request.headers.get("Content-Type", JSON).split(";", 1)[0].strip().lower() or JSON
        body = request.body
        try:
            if media == JSON:
                parsed = parse_json(body)
                return parsed, duplicate_fields(body, parsed)
            if media in _YAML_TYPES:
                return _parse_yaml(body)
            if media == PROTOBUF and not custom:
                return self._parse_protobuf(body), []
        except ValueError as error:
            raise _unrecognized(gvk.kind, str(error), body) from None
        accepted = f"{JSON}, {YAML}" if custom else ACCEPTED
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )

    def _parse_protobuf(self, body: bytes) -> Obj:
        from karmada.kube.schema import protobuf

        api_version, kind, obj = protobuf.decode(body, self._definitions)
        return {"apiVersion": api_version, "kind": kind, **obj}

    def object(
        self,
        request: Request,
        gvk: GVK,
        node: Node,
        validation: str,
        *,
        custom: bool = False,
        also: tuple[str, ...] = (),
    ) -> Obj:
        """The body as an object of exactly this kind: types checked, unknown fields gone.

        `also` are other apiVersions under which the same form may come.
        """
        parsed, duplicates = self.parse(request, gvk, custom=custom)
        if not isinstance(parsed, dict):
            raise _unrecognized(gvk.kind, "couldn't get version/kind; json: not an object", request.body)
        if parsed.get("apiVersion") in also:
            parsed["apiVersion"] = gvk.api_version
        check_type(parsed, gvk)
        unknown = self.normalize(parsed, gvk, node, custom=custom)
        if validation != "Ignore" and (unknown or duplicates):
            if validation == "Strict":
                why = strict_errors_text(unknown, duplicates)
                raise BadRequest(f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {why}')
            warn_fields(request, unknown, duplicates)
        return parsed

    def normalize(self, obj: Obj, gvk: GVK, node: Node, *, custom: bool = False) -> list[str]:
        """In place: prune and check against the schema; the unknown fields' paths."""
        try:
            return normalize(node, obj, custom=custom)
        except DecodeError as error:
            raise BadRequest(
                f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {error}'
            ) from None


def _parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    from karmada.kube.schema.yamlio import load_yaml

    parsed = load_yaml(body)
    return parsed, []


def warn_fields(request: Request, unknown: list[str], duplicates: list[str]) -> None:
    for path in unknown:
        request.warn(f'unknown field "{path}"')
    for path in duplicates:
        request.warn(f'duplicate field "{path}"')


def check_type(obj: Obj, gvk: GVK) -> None:
    """Fill in what the URL says; refuse a body that says otherwise."""
    api_version, kind = obj.get("apiVersion") or gvk.api_version, obj.get("kind") or gvk.kind
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise BadRequest("couldn't get version/kind; json: apiVersion and kind must be strings")
    if api_version != gvk.api_version:
        raise BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version ({gvk.api_version})"
        )
    if kind != gvk.kind:
        why = f'no kind "{kind}" is registered for this endpoint'
        raise BadRequest(f'{kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {why}')
    obj["apiVersion"], obj["kind"] = api_version, kind


def _unrecognized(kind: str, why: str, body: bytes) -> ApiError:
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(body)})")


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    if body[:1] == b"{":
        text = body[:30].decode("utf-8", "replace")
        return text + " ..." if len(body) > 30 else text
    return body[:30].hex() + (" ..." if len(body) > 30 else "")
