"""Texts of refusals, exactly as clients expect them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.quoting import go_quote
from karmada.kube.server.auth.user import User

if TYPE_CHECKING:
    from karmada.kube.server.auth.rbac import AuthzAttributes

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def aggregate(errors: Sequence[str]) -> str:
    """Return one error as it is, several in brackets, none twice."""
    unique = list(dict.fromkeys(errors))
    return unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"


def denied_message(user: User, request: AuthzAttributes) -> str:
    """Return what the user may not do; safe to show in a browser."""
    who = f"User {go_quote(user.name)} cannot {request.verb}"
    if not request.is_resource:
        return f"{who} path {go_quote(request.path)}".translate(_HTML)
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    where = f"in the namespace {go_quote(request.namespace)}" if request.namespace else "at the cluster scope"
    return f"{who} resource {go_quote(resource)} in API group {go_quote(request.group)} {where}".translate(_HTML)


def denied(user: User, request: AuthzAttributes, reason: str = "") -> Forbidden:
    """Return the 403 for a request that was not allowed; `reason` is the authorizer's."""
    why = denied_message(user, request)
    if reason:
        why = f"{why}: {reason}"
    if not request.resource:
        return Forbidden(f"forbidden: {why}", details={})
    return Forbidden.of(GroupResource(request.group, request.resource), request.name, why)
