from __future__ import annotations

import asyncio

import pytest
from multidict import CIMultiDict

from karmada.kube.objects.errors import BadRequest, Forbidden
from karmada.kube.server.auth.impersonation import impersonate
from karmada.kube.server.auth.user import User
from tests.kube.server.auth.auth_fakes import FakeReader, authorizer, binding, role, rule
from tests.support.cases import cases

ME = User("me", "my-uid", ("system:authenticated",), {"k": ("v",)})
AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"


def act(*headers: tuple[str, str], rules: tuple[dict[str, object], ...] = (rule("*", "*", "*"),)) -> User:
    reader = FakeReader([role("r", *rules), binding("b", "ClusterRole/r", "user:me")])
    return asyncio.run(impersonate(ME, CIMultiDict(headers), authorizer(reader)))


def as_user(name: str) -> tuple[str, str]:
    return ("Impersonate-User", name)


def as_group(name: str) -> tuple[str, str]:
    return ("impersonate-group", name)


def test_without_headers_one_is_oneself() -> None:
    assert act(("Accept", "x")) is ME


@cases(
    ([as_user("ann")], User("ann", groups=(AUTHENTICATED,))),
    ([as_user("ann"), as_group("dev"), as_group("ops")], User("ann", groups=("dev", "ops", AUTHENTICATED))),
    ([as_user("ann"), as_group(AUTHENTICATED)], User("ann", groups=(AUTHENTICATED,))),
    ([as_user("ann"), as_group(UNAUTHENTICATED)], User("ann", groups=(UNAUTHENTICATED,))),
    ([as_user("system:anonymous")], User("system:anonymous", groups=(UNAUTHENTICATED,))),
    ([as_user("system:anonymous"), as_group("x")], User("system:anonymous", groups=("x", UNAUTHENTICATED))),
    (
        [as_user("system:serviceaccount:ns:bot")],
        User(
            "system:serviceaccount:ns:bot",
            groups=("system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED),
        ),
    ),
    (
        [as_user("system:serviceaccount:ns:bot"), as_group("g")],
        User("system:serviceaccount:ns:bot", groups=("g", AUTHENTICATED)),
    ),
    ([as_user("ann"), ("Impersonate-Uid", "u-1")], User("ann", "u-1", (AUTHENTICATED,))),
    (
        [
            as_user("ann"),
            ("Impersonate-Extra-Scopes", "a"),
            ("Impersonate-Extra-scopes", "b"),
            ("Impersonate-Extra-example.com%2fx", "c"),
        ],
        User("ann", groups=(AUTHENTICATED,), extra={"scopes": ("a", "b"), "example.com/x": ("c",)}),
    ),
)
def test_one_becomes(headers: list[tuple[str, str]], expected: User) -> None:
    assert act(*headers) == expected


V1 = "authentication.k8s.io"


@cases(
    (
        [as_user("x")],
        (),
        'users "x" is forbidden: User "me" cannot impersonate resource "users" in API group "" at the cluster scope',
    ),
    ([as_user("x")], (rule("impersonate", "", "users", "x"),), ""),
    (
        [as_user("y")],
        (rule("impersonate", "", "users", "x"),),
        'users "y" is forbidden: User "me" cannot impersonate resource "users" in API group "" at the cluster scope',
    ),
    (
        [as_user("x"), as_group("system:masters")],
        (rule("impersonate", "", "users"),),
        'groups "system:masters" is forbidden: User "me" cannot impersonate resource "groups" in API group "" '
        "at the cluster scope",
    ),
    ([as_user("x"), as_group("g")], (rule("impersonate", "", "users groups"),), ""),
    (
        [as_user("x"), as_group("g"), as_group("system:masters")],
        (rule("impersonate", "", "users"), rule("impersonate", "", "groups", "g")),
        'groups "system:masters" is forbidden: User "me" cannot impersonate resource "groups" in API group "" '
        "at the cluster scope",
    ),
    (
        [as_user("system:serviceaccount:ns:bot")],
        (rule("impersonate", "", "users"),),
        'serviceaccounts "bot" is forbidden: User "me" cannot impersonate resource "serviceaccounts" '
        'in API group "" in the namespace "ns"',
    ),
    ([as_user("system:serviceaccount:ns:bot")], (rule("impersonate", "", "serviceaccounts", "bot"),), ""),
    (
        [as_user("x"), ("Impersonate-Extra-Scopes", "all")],
        (rule("impersonate", "", "users"), rule("impersonate", V1, "userextras/scopes", "some")),
        'userextras.authentication.k8s.io "all" is forbidden: User "me" cannot impersonate resource '
        '"userextras/scopes" in API group "authentication.k8s.io" at the cluster scope',
    ),
    (
        [as_user("x"), ("Impersonate-Extra-Scopes", "some")],
        (rule("impersonate", "", "users"), rule("impersonate", V1, "userextras/scopes", "some")),
        "",
    ),
    (
        [as_user("x"), ("Impersonate-Uid", "u")],
        (rule("impersonate", "", "users"),),
        'uids.authentication.k8s.io "u" is forbidden: User "me" cannot impersonate resource "uids" '
        'in API group "authentication.k8s.io" at the cluster scope',
    ),
)
def test_every_header_needs_its_permission(
    headers: list[tuple[str, str]], rules: tuple[dict[str, object], ...], message: str
) -> None:
    if not message:
        assert act(*headers, rules=rules).name == headers[0][1]
        return
    with pytest.raises(Forbidden) as caught:
        act(*headers, rules=rules)
    assert caught.value.message == message


@cases(
    ([as_group("g")], "[{Group  g    }]"),
    ([as_user(""), as_group("g"), as_group("h")], "[{Group  g    } {Group  h    }]"),
    ([("Impersonate-Uid", "u")], "[{UID  u  authentication.k8s.io/v1  }]"),
    ([("Impersonate-Extra-K", "v")], "[{UserExtra  v  authentication.k8s.io/v1  k}]"),
)
def test_a_user_must_be_named(headers: list[tuple[str, str]], shown: str) -> None:
    with pytest.raises(BadRequest) as caught:
        act(*headers)
    assert caught.value.message == f"requested {shown} without impersonating a user"
