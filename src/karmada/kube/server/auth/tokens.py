"""Issuing service-account tokens: on request (short-lived, bound to an object), and into token Secrets (legacy).

Also the two public documents by which others can verify such tokens without a request to this server.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.errors import BadRequest, Conflict, FieldError, Invalid, NotFound, invalid
from karmada.kube.objects.gvk import GVK, GroupKind, GroupResource
from karmada.kube.objects.quoting import go_quote
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.jwt import KeySet, SigningKey
from karmada.kube.server.auth.service_accounts import (
    LEGACY_ISSUER,
    LEGACY_PREFIX,
    NODES,
    PODS,
    SECRETS,
    username,
)

DEFAULT_ISSUER = "https://kubernetes.default.svc.cluster.local"
DEFAULT_SECONDS = 3600
MIN_SECONDS, MAX_SECONDS = 600, 1 << 32
POD_SECONDS = 3607
"""Seconds that the ServiceAccount admission plug-in requests; recognised and given the extended lifetime below."""
EXTENDED_SECONDS = 365 * 24 * 3600

SECRET_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
JWKS_PATH = "/openid/v1/jwks"

_KIND = GVK("authentication.k8s.io", "v1", "TokenRequest")


class TokenIssuer:
    """Makes the tokens of one issuer."""

    def __init__(
        self, key: SigningKey, issuer: str = DEFAULT_ISSUER, audiences: Sequence[str] = (), *, now: Callable[[], float]
    ) -> None:
        self._key = key
        self.issuer = issuer
        self.audiences = tuple(audiences) or (issuer,)
        self.now = now

    def bound_token(
        self,
        account: Obj,
        audiences: Sequence[str],
        seconds: int,
        *,
        bound: dict[str, Obj] | None = None,
        warn_after: int = 0,
        now: float | None = None,
    ) -> str:
        """`bound` holds the claims about the object (pod, secret, node) the token lives and dies with."""
        meta = account["metadata"]
        issued = int(self.now() if now is None else now)
        own: Obj = {
            "namespace": meta["namespace"],
            "serviceaccount": {"name": meta["name"], "uid": meta["uid"]},
            **(bound or {}),
        }
        if warn_after:
            own["warnafter"] = issued + warn_after
        claims: dict[str, Any] = {
            "aud": list(audiences),
            "exp": issued + seconds,
            "iat": issued,
            "iss": self.issuer,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": own,
            "nbf": issued,
            "sub": username(meta["namespace"], meta["name"]),
        }
        return self._key.sign(claims)

    def legacy_token(self, account: Obj, secret_name: str) -> str:
        """Issue a token without end; it is good as long as the Secret holds it."""
        meta = account["metadata"]
        claims = {
            "iss": LEGACY_ISSUER,
            f"{LEGACY_PREFIX}namespace": meta["namespace"],
            f"{LEGACY_PREFIX}secret.name": secret_name,
            f"{LEGACY_PREFIX}service-account.name": meta["name"],
            f"{LEGACY_PREFIX}service-account.uid": meta["uid"],
            "sub": username(meta["namespace"], meta["name"]),
        }
        return self._key.sign(claims)


# --- TokenRequest -------------------------------------------------------------------------------------------------


class _Binding(NamedTuple):
    """The claims about the object a token is bound to."""

    claims: dict[str, Obj]
    uid: str
    is_pod: bool = False


def request_token(
    account: Obj,
    request: Obj,
    issuer: TokenIssuer,
    reader: Reader,
    *,
    warnings: list[str] | None = None,
    max_seconds: int = 0,
    extend_pod_tokens: bool = True,
) -> Obj:
    """Return the TokenRequest with its token; warnings are appended. ApiError if it is not acceptable."""
    meta = account["metadata"]
    metadata = _request_metadata(request, meta)
    spec = dict(request.get("spec") or {})
    spec["audiences"] = list(spec.get("audiences") or issuer.audiences)
    seconds = spec.get("expirationSeconds")
    spec["expirationSeconds"] = seconds = DEFAULT_SECONDS if seconds is None else seconds
    errors = _lifetime_errors(seconds)
    if errors:
        raise Invalid.of(GroupKind(_KIND.group, _KIND.kind), "", errors)
    reference = spec.get("boundObjectRef")
    binding = _bind(reference, meta, reader) if reference else None
    if max_seconds and seconds > max_seconds:
        if warnings is not None:
            warnings.append(f"requested expiration of {seconds} seconds shortened to {max_seconds} seconds")
        spec["expirationSeconds"] = seconds = max_seconds
    own_audience = all(audience in issuer.audiences for audience in spec["audiences"])
    extended = extend_pod_tokens and binding is not None and binding.is_pod and seconds == POD_SECONDS and own_audience
    now = issuer.now()
    token = issuer.bound_token(
        account,
        spec["audiences"],
        EXTENDED_SECONDS if extended else seconds,
        bound=binding.claims if binding else None,
        warn_after=seconds if extended else 0,
        now=now,
    )
    return {
        "kind": _KIND.kind,
        "apiVersion": _KIND.api_version,
        "metadata": {**metadata, "uid": str(uuid.uuid4()), "creationTimestamp": rfc3339(now)},
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": rfc3339(int(now) + seconds)},
    }


def _request_metadata(request: Obj, account: Obj) -> Obj:
    given = request.get("metadata") or {}
    if given.get("namespace") not in (None, "", account["namespace"]):
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if given.get("name") not in (None, "", account["name"]):
        wrong, right = given["name"], account["name"]
        raise BadRequest(f"the name of the object ({wrong}) does not match the name on the URL ({right})")
    return {"name": account["name"], "namespace": account["namespace"]}


def _lifetime_errors(seconds: int) -> list[FieldError]:
    path = "spec.expirationSeconds"
    if seconds < MIN_SECONDS:
        return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > MAX_SECONDS:
        return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _bind(reference: Obj, account: Obj, reader: Reader) -> _Binding:
    gvk = GVK.parse(reference.get("apiVersion", ""), reference.get("kind", ""))
    name, namespace = reference.get("name", ""), account["namespace"]
    if gvk.group or gvk.kind not in ("Pod", "Secret", "Node"):
        raise BadRequest(f"cannot bind token to object of type {gvk}")
    if gvk.kind == "Pod":
        binding = _bind_pod(_existing(reader, PODS, namespace, name), account["name"], reader)
    elif gvk.kind == "Secret":
        binding = _claim("secret", _existing(reader, SECRETS, namespace, name))
    else:
        binding = _claim("node", _existing(reader, NODES, "", name))
    wanted = reference.get("uid")
    if wanted and wanted != binding.uid:
        why = (
            f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise Conflict.of(GroupResource(gvk.group, gvk.kind), name, why)
    return binding


def _existing(reader: Reader, resource: GroupResource, namespace: str, name: str) -> Obj:
    obj = reader.get(resource, namespace, name)
    if obj is None:
        raise NotFound.of(resource, name)
    return obj


def _claim(key: str, obj: Obj) -> _Binding:
    meta = obj["metadata"]
    return _Binding({key: {"name": meta["name"], "uid": meta["uid"]}}, meta["uid"])


def _bind_pod(pod: Obj, account: str, reader: Reader) -> _Binding:
    spec = pod.get("spec") or {}
    if spec.get("serviceAccountName") != account:
        quoted = go_quote(account)
        raise BadRequest(
            f"cannot bind token for serviceaccount {quoted} to pod running with different serviceaccount name."
        )
    claims, uid, _ = _claim("pod", pod)
    node_name = spec.get("nodeName")
    if node_name:
        node = reader.get(NODES, "", node_name)
        claims["node"] = {"name": node_name} if node is None else _claim("node", node).claims["node"]
    return _Binding(claims, uid, is_pod=True)


# --- token Secrets ------------------------------------------------------------------------------------------------


def account_of(secret: Obj) -> str:
    """Return the name of the account a token Secret is for."""
    return str((secret["metadata"].get("annotations") or {}).get(ACCOUNT_NAME, ""))


def orphaned(secret: Obj, account: Obj | None) -> bool:
    """Return whether a token Secret must go: its account does not exist, or is another one of the same name."""
    if account is None:
        return True
    uid = (secret["metadata"].get("annotations") or {}).get(ACCOUNT_UID)
    return bool(uid) and uid != account["metadata"]["uid"]


def populate(secret: Obj, account: Obj, issuer: TokenIssuer, ca_pem: bytes) -> Obj | None:
    """Return the token Secret with everything it should hold; None if nothing is missing."""
    meta, data = secret["metadata"], secret.get("data") or {}
    annotations = meta.get("annotations") or {}
    wanted = dict(data)
    wanted["ca.crt"] = _encode(ca_pem)
    wanted["namespace"] = _encode(meta["namespace"].encode())
    if not data.get("token"):
        wanted["token"] = _encode(issuer.legacy_token(account, meta["name"]).encode())
    named = {**annotations, ACCOUNT_NAME: account["metadata"]["name"], ACCOUNT_UID: account["metadata"]["uid"]}
    if wanted == data and named == annotations:
        return None
    return {**secret, "metadata": {**meta, "annotations": named}, "data": wanted}


def _encode(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


# --- documents ----------------------------------------------------------------------------------------------------


def openid_configuration(issuer: str, keys: KeySet, server_url: str) -> Obj:
    """/.well-known/openid-configuration; `server_url` is where the keys can be fetched."""
    return {
        "issuer": issuer,
        "jwks_uri": server_url.rstrip("/") + JWKS_PATH,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({key.alg for key in keys.keys}),
    }
