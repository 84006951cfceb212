"""Acting as somebody else: Impersonate-* headers, each of which the caller must be allowed to use.

Every header is one permission: `impersonate` on users, groups, serviceaccounts, uids or userextras/<key>, with the
wanted value as the object's name. The caller needs all of them, and a user must be named.
"""

from __future__ import annotations

from typing import NamedTuple

from karmada.kube.objects.errors import BadRequest
from karmada.kube.server.auth import headers as h
from karmada.kube.server.auth.identity import authenticated
from karmada.kube.server.auth.interface import Decides
from karmada.kube.server.auth.messages import denied
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.service_accounts import group_names, split_username
from karmada.kube.server.auth.user import ANONYMOUS, UNAUTHENTICATED, User

_AUTHENTICATION = "authentication.k8s.io"
_VERSION = "v1"


class _Wanted(NamedTuple):
    """The identity that the headers request."""

    user: str
    groups: tuple[str, ...]
    uid: str
    extra: dict[str, tuple[str, ...]]


async def impersonate(user: User, headers: h.Headers, rights: Decides) -> User:
    """Return the user to act as (the caller itself without such headers); Forbidden or BadRequest."""
    wanted = _read(headers)
    if wanted is None:
        return user
    if not wanted.user:
        raise BadRequest(f"requested [{' '.join(_references(wanted))}] without impersonating a user")
    for request in _permissions(wanted):
        decision = await rights.decide(user, request)
        if not decision.allowed:
            raise denied(user, request, decision.reason)
    return _become(wanted)


def _read(headers: h.Headers) -> _Wanted | None:
    if "impersonate-" not in ",".join(headers).lower():
        return None
    wanted = _Wanted(
        user=headers.get(h.IMPERSONATE_USER, ""),
        groups=h.all_values(headers, h.IMPERSONATE_GROUP),
        uid=headers.get(h.IMPERSONATE_UID, ""),
        extra=h.extras(headers, h.IMPERSONATE_EXTRA),
    )
    return wanted if any(wanted) else None


def _permissions(wanted: _Wanted) -> list[AuthzAttributes]:
    account = split_username(wanted.user)
    if account is not None:
        first = AuthzAttributes("impersonate", "", "", "serviceaccounts", namespace=account[0], name=account[1])
    else:
        first = AuthzAttributes("impersonate", "", "", "users", name=wanted.user)
    requests = [first]
    requests += [AuthzAttributes("impersonate", "", "", "groups", name=group) for group in wanted.groups]
    for key, values in wanted.extra.items():
        for value in values:
            requests.append(AuthzAttributes("impersonate", _AUTHENTICATION, _VERSION, "userextras", key, "", value))
    if wanted.uid:
        requests.append(AuthzAttributes("impersonate", _AUTHENTICATION, _VERSION, "uids", name=wanted.uid))
    return requests


def _become(wanted: _Wanted) -> User:
    groups = wanted.groups
    account = split_username(wanted.user)
    if account is not None and not groups:
        groups = group_names(account[0])
    if wanted.user == ANONYMOUS and UNAUTHENTICATED not in groups:
        groups = (*groups, UNAUTHENTICATED)
    return authenticated(User(wanted.user, wanted.uid, groups, wanted.extra))


def _references(wanted: _Wanted) -> list[str]:
    """Return the headers in the form in which the error shows them: kind, namespace, name, uid, version, and so on."""
    version = f"{_AUTHENTICATION}/{_VERSION}"
    shown = [f"{{Group  {group}    }}" for group in wanted.groups]
    shown += [f"{{UserExtra  {value}  {version}  {key}}}" for key, values in wanted.extra.items() for value in values]
    if wanted.uid:
        shown.append(f"{{UID  {wanted.uid}  {version}  }}")
    return shown
