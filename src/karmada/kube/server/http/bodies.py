"""Request bodies: JSON, YAML or protobuf in, a checked object of the endpoint's kind out.

Unknown fields never reach the store; whether they are a warning, an error or silence is the client's fieldValidation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError, BadRequest, Invalid, UnsupportedMediaType, invalid
from karmada.kube.objects.gvk import GVK, GroupKind
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import DELETE_OPTIONS, Definitions
from karmada.kube.schema.decode import DecodeError, duplicate_fields, meant_field, normalize, parse_json
from karmada.kube.schema.node import Node
from karmada.kube.server.http.negotiation import ACCEPTED, JSON, PROTOBUF, YAML
from karmada.kube.server.http.request import Request

_YAML_TYPES = (YAML, "application/x-yaml", "text/yaml")
_DELETE_OPTIONS = GVK("meta.k8s.io", "v1", "DeleteOptions")
_OLD_VERSION = re.compile(r"v[0-9]+(alpha|beta)[0-9]+")
_SCHEME = "kubernetes/pkg/api/legacyscheme/scheme.go:30"
_OPTIONS_SCHEME = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
_DELETE_VERSIONS = ("v1", "policy/v1", "policy/v1beta1")


class Bodies:
    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    def parse(self, request: Request, gvk: GVK, *, custom: bool = False) -> tuple[Any, list[str]]:
        """Return the body as JSON data of our own, and what a strict decoder says of fields that stood twice in it."""
        if request.in_process and request.obj is not None:
            return copy_json(request.obj), []
        media = request.headers.get("Content-Type", JSON).split(";", 1)[0].strip().lower() or JSON
        body = request.body
        try:
            if media == JSON:
                parsed = parse_json(body)
                return parsed, repeated(body, parsed)
            if media in _YAML_TYPES:
                return _parse_yaml(body)
            if media == PROTOBUF and not custom:
                return self._parse_protobuf(body, gvk), []
        except ValueError as error:
            raise _unrecognized(gvk.kind, str(error), body) from None
        accepted = f"{JSON}, {YAML}" if custom else ACCEPTED
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )

    def _parse_protobuf(self, body: bytes, gvk: GVK) -> Obj:
        from karmada.kube.schema import protobuf

        try:
            _, _, obj = protobuf.decode(body, self._definitions, gvk)
        except protobuf.UnknownMessage as error:
            raise UnsupportedMediaType(str(error)) from None
        return obj

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
        """Return the body as an object of exactly this kind: types checked, unknown fields gone.

        `also` are other apiVersions under which the same form may come.
        """
        parsed, complaints = self.parse(request, gvk, custom=custom)
        if not isinstance(parsed, dict):
            raise _unrecognized(gvk.kind, _no_object(parsed), request.body)
        if parsed.get("apiVersion") in also:
            parsed["apiVersion"] = gvk.api_version
        if custom and not request.in_process:
            check_custom_type(parsed, gvk, request.body)
        self.check(parsed, request, gvk, node, validation, custom=custom, complaints=complaints)
        return parsed

    def check(
        self,
        obj: Obj,
        request: Request,
        gvk: GVK,
        node: Node,
        validation: str,
        *,
        custom: bool = False,
        complaints: Sequence[str] = (),
    ) -> None:
        """In place: make a body an object of exactly this kind. `complaints` are those of whoever has read it."""
        self._check_type(obj, gvk)
        complaints = [*self.normalize(obj, gvk, node, custom=custom), *complaints]
        if complaints and validation == "Strict":
            why = strict_text(complaints)
            raise BadRequest(f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {why}')
        if complaints and validation == "Warn":
            for text in complaints:
                request.warn(text)

    def _check_type(self, obj: Obj, gvk: GVK) -> None:
        """In place: fill in the type of the endpoint; refuse a body of another type."""
        own_version = gvk.api_version
        api_version, kind = obj.get("apiVersion") or own_version, obj.get("kind") or gvk.kind
        if api_version == own_version and kind == gvk.kind:
            obj["apiVersion"], obj["kind"] = api_version, kind
            return
        if not isinstance(api_version, str) or not isinstance(kind, str):
            raise BadRequest("couldn't get version/kind; json: apiVersion and kind must be strings")
        given = GVK.parse(api_version, kind)
        if not self._is_known(given, gvk):
            why = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
        elif kind != gvk.kind:
            internal = gvk.group.partition(".")[0] or "core"
            why = f"converting ({given.version}.{kind}) to ({internal}.{gvk.kind}): unknown conversion"
        else:
            raise BadRequest(_other_version(api_version, gvk))
        raise BadRequest(f'{kind} in version "{given.version}" cannot be handled as a {gvk.kind}: {why}')

    def _is_known(self, given: GVK, gvk: GVK) -> bool:
        """Return whether Kubernetes has a type of this name; old versions of a kind are known but not served."""
        older = given._replace(version="") == gvk._replace(version="") and bool(_OLD_VERSION.fullmatch(given.version))
        definitions = self._definitions
        return given == gvk or older or definitions.node_for(given) is not None or definitions.node_for(gvk) is None

    def delete_options(self, request: Request, own_version: str) -> Obj | None:
        """Return the body of a DELETE, which comes under several names; None: there was nothing in it."""
        parsed, _ = self.parse(request, _DELETE_OPTIONS)
        if parsed is None:
            return None
        if not isinstance(parsed, dict):
            raise _unrecognized("DeleteOptions", _no_object(parsed), request.body)
        if parsed.get("apiVersion") in (*_DELETE_VERSIONS, own_version):
            parsed["apiVersion"] = _DELETE_OPTIONS.api_version
        version, kind = parsed.get("apiVersion") or _DELETE_OPTIONS.api_version, parsed.get("kind") or "DeleteOptions"
        if (version, kind) != (_DELETE_OPTIONS.api_version, _DELETE_OPTIONS.kind):
            named = "v1" if version == _DELETE_OPTIONS.api_version else version
            raise BadRequest(f'no kind "{kind}" is registered for version "{named}" in scheme "{_OPTIONS_SCHEME}"')
        self.normalize(parsed, _DELETE_OPTIONS, self._definitions.node(DELETE_OPTIONS))
        return parsed

    def normalize(self, obj: Obj, gvk: GVK, node: Node, *, custom: bool = False, known: Obj | None = None) -> list[str]:
        """In place: prune and check against the schema; what a strict decoder says of the fields that were removed.

        What `obj` shares with a `known` object is in form already. Raises BadRequest for a value of the wrong type.
        """
        try:
            return self.pruned(obj, node, custom=custom, known=known)
        except DecodeError as error:
            raise BadRequest(
                f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {error}'
            ) from None

    def pruned(self, obj: Obj, node: Node, *, custom: bool = False, known: Obj | None = None) -> list[str]:
        """`normalize`, but raises DecodeError, for callers with another wording."""
        meta = obj.get("metadata")
        if meta is None:
            obj.pop("metadata", None)
        elif meta.__class__ is dict and meta.get("managedFields") == []:
            meta["managedFields"] = [{}]  # the same wish, in the form that is not taken for nothing said
        unknown = normalize(node, obj, custom=custom, known=known)
        return [_unknown(path, meant_field(node, path) if custom else "") for path in unknown]


def _unknown(path: str, meant: str) -> str:
    text = f'unknown field "{path}"'
    return f'{text} (did you mean "{meant}"?)' if meant else text


def _parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    from karmada.kube.schema.yamlio import load_strict

    return load_strict(body)


def repeated(body: bytes, parsed: Any) -> list[str]:
    """Return what a strict decoder says of the fields that stand twice in a JSON body."""
    return [f'duplicate field "{path}"' for path in duplicate_fields(body, parsed)]


def strict_text(complaints: list[str]) -> str:
    """Return what a strict request is refused with."""
    return "strict decoding error: " + ", ".join(complaints)


def _other_version(api_version: str, gvk: GVK) -> str:
    return f"the API version in the data ({api_version}) does not match the expected API version ({gvk.api_version})"


def _no_object(parsed: Any) -> str:
    what = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}.get(type(parsed), "null")
    type_meta = (
        r"""struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"""
    )
    return (
        f"couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type {type_meta}"
    )


def check_custom_type(obj: Obj, gvk: GVK, body: bytes) -> None:
    """Refuse a body without kind and version: custom resources have no registered types to fall back on."""
    if not obj.get("kind"):
        raise _unrecognized(gvk.kind, f"Object 'Kind' is missing in '{body.decode('utf-8', 'replace')}'", body)
    version = obj.get("apiVersion") or ""
    if version != gvk.api_version:
        raise BadRequest(_other_version(version, gvk))
    if obj["kind"] != gvk.kind:
        error = invalid("kind", obj["kind"], f"must be {gvk.kind}")
        name = (obj.get("metadata") or {}).get("name") or ""
        raise Invalid.of(GroupKind(gvk.group, str(obj["kind"])), name, [error])


def _unrecognized(kind: str, why: str, body: bytes) -> ApiError:
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(body)})")


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    if body[:1] == b"{":
        text = body[:30].decode("utf-8", "replace")
        return text + " ..." if len(body) > 30 else text
    return body[:30].hex() + (" ..." if len(body) > 30 else "")
