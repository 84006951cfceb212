"""Reviews of identity and access: created with a spec, returned with a status; nothing is stored.

Access reviews are decided by the authorizer for any user, oneself, or any user within one namespace; the rules review
lists what one may do; the token review returns the owner of a token; the self review the caller.
"""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.errors import BadRequest, FieldError, Invalid, invalid
from karmada.kube.objects.gvk import GroupKind
from karmada.kube.objects.times import rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.authentication import UNKNOWN_TOKEN, Authenticator
from karmada.kube.server.auth.jwt import TokenError
from karmada.kube.server.auth.messages import aggregate
from karmada.kube.server.auth.rbac import Authorizer, AuthzAttributes
from karmada.kube.server.auth.user import User

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"


async def review(
    kind: str,
    obj: Obj,
    user: User,
    authorizer: Authorizer,
    authenticator: Authenticator,
    *,
    namespace: str = "",
    now: float = 0.0,
) -> Obj:
    """Return the posted object with its status.

    `namespace` is the request's; Invalid or BadRequest for a bad review.
    """
    if kind == "TokenReview":
        return await _token_review(obj, authenticator)
    if kind == "SelfSubjectReview":
        return {**obj, "metadata": {"creationTimestamp": rfc3339(now)}, "status": {"userInfo": user.info()}}
    if kind == "SelfSubjectRulesReview":
        return _rules_review(obj, user, authorizer)
    return _access_review(kind, obj, user, authorizer, namespace)


# --- access -------------------------------------------------------------------------------------------------------


def _access_review(kind: str, obj: Obj, user: User, authorizer: Authorizer, namespace: str) -> Obj:
    spec = obj.get("spec") or {}
    about_self, local = kind == "SelfSubjectAccessReview", kind == "LocalSubjectAccessReview"
    errors = _attribute_errors(spec)
    if not about_self:
        errors += _subject_errors(spec)
    if local:
        errors += _local_errors(obj, spec, namespace)
    else:
        errors += _metadata_errors(obj, "must be empty")
    if errors:
        raise Invalid.of(GroupKind(_AUTHORIZATION, ""), "", errors)
    decision = authorizer.authorize(user if about_self else _reviewed_user(spec), attributes_of(spec))
    status: Obj = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return {**obj, "status": status}


def _local_errors(obj: Obj, spec: Obj, namespace: str) -> list[FieldError]:
    own = (obj.get("metadata") or {}).get("namespace") or namespace
    if own != namespace:
        raise BadRequest(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    errors = _metadata_errors(obj, "must be empty except for namespace", allowed="namespace")
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != own:
        wrong = resource.get("namespace", "")
        errors.append(invalid("spec.resourceAttributes.namespace", wrong, "must match metadata.namespace"))
    if path is not None:
        errors.append(invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request"))
    return errors


def _attribute_errors(spec: Obj) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        return [
            invalid("spec.nonResourceAttributes", path, "cannot be specified in combination with resourceAttributes")
        ]
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid("spec.resourceAttributes", None, why)]
    return []


def _subject_errors(spec: Obj) -> list[FieldError]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [invalid("spec.user", spec.get("user", ""), "at least one of user or group must be specified")]


def _metadata_errors(obj: Obj, why: str, allowed: str = "") -> list[FieldError]:
    metadata = obj.get("metadata") or {}
    given = {key: value for key, value in metadata.items() if value and key not in ("managedFields", allowed)}
    return [invalid("metadata", metadata, why)] if given else []


def _reviewed_user(spec: Obj) -> User:
    return User(
        name=spec.get("user", ""),
        uid=spec.get("uid", ""),
        groups=tuple(spec.get("groups") or ()),
        extra={key.lower(): tuple(values) for key, values in (spec.get("extra") or {}).items()},
    )


def attributes_of(spec: Obj) -> AuthzAttributes:
    """Return what an access review is about."""
    path: Obj | None = spec.get("nonResourceAttributes")
    if path is not None:
        return AuthzAttributes(path.get("verb", ""), path=path.get("path", ""), is_resource=False)
    wanted: Obj = spec.get("resourceAttributes") or {}
    fields = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return AuthzAttributes(*(wanted.get(field, "") for field in fields))


# --- rules --------------------------------------------------------------------------------------------------------


def _rules_review(obj: Obj, user: User, authorizer: Authorizer) -> Obj:
    namespace = (obj.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise BadRequest("no namespace on request")
    gathered = authorizer.rules_for(user, namespace)
    status: dict[str, Any] = {"resourceRules": [], "nonResourceRules": [], "incomplete": False}
    for rule in gathered.rules:
        if rule.get("resources"):
            keys = ("verbs", "apiGroups", "resources", "resourceNames")
            status["resourceRules"].append({key: rule[key] for key in keys if rule.get(key)})
        if rule.get("nonResourceURLs"):
            paths = {"verbs": rule.get("verbs") or [], "nonResourceURLs": rule["nonResourceURLs"]}
            status["nonResourceRules"].append(paths)
    if gathered.errors:
        status["evaluationError"] = aggregate(gathered.errors)
    return {**obj, "metadata": {}, "spec": {}, "status": status}


# --- tokens -------------------------------------------------------------------------------------------------------


async def _token_review(obj: Obj, authenticator: Authenticator) -> Obj:
    spec = obj.get("spec") or {}
    token = spec.get("token", "")
    if not token:
        raise BadRequest(f"token is required for TokenReview in {_AUTHENTICATION}")
    wanted = tuple(spec.get("audiences") or authenticator.audiences)
    try:
        identity = await authenticator.authenticate_anywhere(token, wanted)
    except TokenError as error:
        reason = str(error)
        text = reason if reason == UNKNOWN_TOKEN else f"[{UNKNOWN_TOKEN}, {reason}]"
        return {**obj, "status": {"user": {}, "error": text}}
    status: Obj = {"authenticated": True, "user": identity.user.info()}
    if identity.audiences:
        status["audiences"] = list(identity.audiences)
    return {**obj, "status": status}
