"""ConfigMaps, Secrets and ServiceAccounts.

`immutable: true` freezes the data for good. A Secret's stringData is only a way to write: it is merged into data and
never stored. A Secret of a known type must have that type's keys; what is wrong with secret text is never printed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from karmada.kube.kinds import checks
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, forbidden_field, invalid, required, too_long
from karmada.kube.objects.types import Obj
from karmada.kube.schema.decode import parse_json

MAX_DATA = 1024 * 1024
FROZEN = "field is immutable when `immutable` is set"
SERVICE_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_OF_BODIES = "couldn't get version/kind; json parse error: "
"""The prefix of JSON errors about the body of a request."""
_REDACTED = "<secret contents redacted>"


def _keys(errors: list[FieldError], path: str, data: Obj) -> None:
    for key in data:
        messages = names.config_key(key)
        if messages:
            checks.add_invalid(errors, f"{path}[{key}]", key, messages)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _decoded(text: str) -> int:
    """Return the number of bytes that a base64 text stands for."""
    return len(text) * 3 // 4 - text.count("=", -2)


def validate_config_map(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    _keys(errors, "data", data)
    for key in binary:
        checks.add_invalid(errors, f"binaryData[{key}]", key, names.config_key(key))
        if key in data:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    if sum(map(_bytes, data.values())) + sum(map(_decoded, binary.values())) > MAX_DATA:
        errors.append(too_long("[]", MAX_DATA))
    return errors


def _frozen(obj: Obj, old: Obj, *keys: str) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors = [] if obj.get("immutable") else [forbidden_field("immutable", FROZEN)]
    errors += [forbidden_field(key, FROZEN) for key in keys if (obj.get(key) or {}) != (old.get(key) or {})]
    return errors


def update_config_map(obj: Obj, old: Obj) -> list[FieldError]:
    return _frozen(obj, old, "data", "binaryData")


# --- secrets


def default_secret(obj: Obj) -> None:
    if not obj.get("type"):
        obj["type"] = "Opaque"
    if "stringData" in obj:
        texts = obj.pop("stringData") or {}
        if texts:
            data = obj.get("data") or {}
            data.update((key, base64.b64encode(text.encode()).decode()) for key, text in texts.items())
            obj["data"] = data


def validate_secret(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    data = obj.get("data") or {}
    _keys(errors, "data", data)
    if sum(map(_decoded, data.values())) > MAX_DATA:
        errors.append(too_long("data", MAX_DATA))
    rule = _SECRET_TYPES.get(obj.get("type") or "")
    if rule is not None:
        rule(errors, obj, data)
    return errors


def _service_account(errors: list[FieldError], obj: Obj, _data: Obj) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    checks.needed(errors, f"metadata.annotations[{SERVICE_ACCOUNT_NAME}]", annotations.get(SERVICE_ACCOUNT_NAME))


def _json(key: str) -> Callable[[list[FieldError], Obj, Obj], None]:
    def rule(errors: list[FieldError], _obj: Obj, data: Obj) -> None:
        if key not in data:
            errors.append(required(f"data[{key}]"))
            return
        try:
            parsed = parse_json(base64.b64decode(data[key]))
        except ValueError as error:
            errors.append(invalid(f"data[{key}]", _REDACTED, str(error).removeprefix(_OF_BODIES)))
        else:
            if not isinstance(parsed, dict):
                detail = "json: cannot unmarshal into Go value of type map[string]interface {}"
                errors.append(invalid(f"data[{key}]", _REDACTED, detail))

    return rule


def _has(*keys: str) -> Callable[[list[FieldError], Obj, Obj], None]:
    def rule(errors: list[FieldError], _obj: Obj, data: Obj) -> None:
        errors.extend(required(f"data[{key}]") for key in keys if key not in data)

    return rule


def _basic_auth(errors: list[FieldError], _obj: Obj, data: Obj) -> None:
    if "username" not in data and "password" not in data:
        errors.extend((required("data[username]"), required("data[password]")))


_SECRET_TYPES: dict[str, Callable[[list[FieldError], Obj, Obj], None]] = {
    "kubernetes.io/service-account-token": _service_account,
    "kubernetes.io/dockercfg": _json(".dockercfg"),
    "kubernetes.io/dockerconfigjson": _json(".dockerconfigjson"),
    "kubernetes.io/basic-auth": _basic_auth,
    "kubernetes.io/ssh-auth": _has("ssh-privatekey"),
    "kubernetes.io/tls": _has("tls.crt", "tls.key"),
}


def update_secret(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    checks.unchanged(errors, "type", obj.get("type"), old.get("type"))
    return errors + _frozen(obj, old, "data")


CONFIG_MAP = Strategy(validate=validate_config_map, validate_update=update_config_map)
SECRET = Strategy(
    default=default_secret,
    validate=validate_secret,
    validate_update=update_secret,
    fields={"type": lambda obj: obj.get("type") or ""},
)
SERVICE_ACCOUNT = Strategy(returns_deleted=True)
