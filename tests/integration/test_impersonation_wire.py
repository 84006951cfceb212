"""Acting as somebody else over the wire: every header is a permission, and the result is that somebody."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from multidict import CIMultiDict

from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.callers import Caller, user_certificate
from tests.support.rights import binding, role, user
from tests.support.wire import Http

RBAC = "/apis/rbac.authorization.k8s.io/v1"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
Headers = list[tuple[str, str]]


class Proxy(Caller):
    """A caller without any right but those a test gives it; headers may repeat."""

    async def acting(self, *headers: tuple[str, str]) -> tuple[int, Obj]:
        sent = [("User-Agent", "tests/1"), ("Accept", "application/json"), *headers]
        async with self._session.request(
            "POST", self._server.url + WHO, json={}, headers=CIMultiDict(sent), ssl=self._tls
        ) as answer:
            return answer.status, await answer.json()


@pytest.fixture
async def proxy(server: ApiServer) -> AsyncIterator[Proxy]:
    async with Proxy(server, **user_certificate(server, "proxy")) as caller:
        assert isinstance(caller, Proxy)
        yield caller


async def allow(http: Http, *rules: Obj) -> None:
    await http("POST", f"{RBAC}/clusterroles", role("proxy", *rules))
    answer = await http("POST", f"{RBAC}/clusterrolebindings", binding("proxy", user("proxy")))
    assert answer.code == 201, answer.body


def may(*resources: str, names: list[str] | None = None, group: str = "") -> Obj:
    rule: Obj = {"apiGroups": [group], "resources": list(resources), "verbs": ["impersonate"]}
    return {**rule, "resourceNames": names} if names else rule


USER = ("Impersonate-User", "jane")
AUTH = "authentication.k8s.io"


async def test_without_the_right_it_is_forbidden(proxy: Proxy) -> None:
    code, body = await proxy.acting(USER)
    assert code == 403
    assert body["message"] == (
        'users "jane" is forbidden: User "proxy" cannot impersonate resource "users" '
        'in API group "" at the cluster scope'
    )


MATRIX: dict[str, tuple[list[Obj], Headers, str, Any]] = {
    "a user": ([may("users")], [USER], "jane", ["system:authenticated"]),
    "a user by name": ([may("users", names=["jane"])], [USER], "jane", ["system:authenticated"]),
    "a user and groups": (
        [may("users", "groups")],
        [USER, ("Impersonate-Group", "a"), ("Impersonate-Group", "b")],
        "jane",
        ["a", "b", "system:authenticated"],
    ),
    "an account": (
        [may("serviceaccounts")],
        [("Impersonate-User", "system:serviceaccount:default:robot")],
        "system:serviceaccount:default:robot",
        ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
    ),
    "an account with groups of its own": (
        [may("serviceaccounts", "groups")],
        [("Impersonate-User", "system:serviceaccount:default:robot"), ("Impersonate-Group", "x")],
        "system:serviceaccount:default:robot",
        ["x", "system:authenticated"],
    ),
    "nobody": (
        [may("users")],
        [("Impersonate-User", "system:anonymous")],
        "system:anonymous",
        ["system:unauthenticated"],
    ),
    "already authenticated": (
        [may("users", "groups")],
        [USER, ("Impersonate-Group", "system:authenticated")],
        "jane",
        ["system:authenticated"],
    ),
    "explicitly not authenticated": (
        [may("users", "groups"), {"apiGroups": [AUTH], "resources": ["selfsubjectreviews"], "verbs": ["create"]}],
        [USER, ("Impersonate-Group", "system:unauthenticated"), ("Impersonate-Group", "system:masters")],
        "jane",
        ["system:unauthenticated", "system:masters"],
    ),
}


@pytest.mark.parametrize(("rules", "headers", "name", "groups"), MATRIX.values(), ids=MATRIX.keys())
async def test_with_the_right_one_is_somebody_else(
    http: Http, proxy: Proxy, rules: list[Obj], headers: Headers, name: str, groups: list[str]
) -> None:
    await allow(http, *rules)
    code, body = await proxy.acting(*headers)
    if name == "system:anonymous":
        assert code == 403, "not even a self review"
        assert 'User "system:anonymous"' in body["message"]
        return
    assert code == 201, body
    assert body["status"]["userInfo"]["username"] == name
    assert body["status"]["userInfo"]["groups"] == groups


async def test_uid_and_extras_need_rights_of_their_own(http: Http, proxy: Proxy) -> None:
    await allow(
        http, may("users"), may("uids", group=AUTH, names=["7"]), may("userextras/scopes", group=AUTH, names=["view"])
    )
    code, body = await proxy.acting(USER, ("Impersonate-Uid", "7"), ("Impersonate-Extra-Scopes", "view"))
    assert code == 201
    assert body["status"]["userInfo"]["uid"] == "7"
    assert body["status"]["userInfo"]["extra"] == {"scopes": ["view"]}
    for header in (("Impersonate-Uid", "8"), ("Impersonate-Extra-Scopes", "edit"), ("Impersonate-Extra-Other", "view")):
        code, body = await proxy.acting(USER, header)
        assert code == 403, header
        assert "cannot impersonate resource" in body["message"]


async def test_extra_keys_are_percent_decoded(http: Http, proxy: Proxy) -> None:
    await allow(http, may("users"), may("*", group=AUTH))
    _, body = await proxy.acting(USER, ("Impersonate-Extra-acme.com%2Fproject", "some-project"))
    assert body["status"]["userInfo"]["extra"] == {"acme.com/project": ["some-project"]}


REFUSED: dict[str, Headers] = {
    "a group not granted": [USER, ("Impersonate-Group", "admins")],
    "the masters": [USER, ("Impersonate-Group", "system:masters")],
    "another user": [("Impersonate-User", "joe")],
    "an account": [("Impersonate-User", "system:serviceaccount:default:robot")],
}


@pytest.mark.parametrize("headers", REFUSED.values(), ids=REFUSED.keys())
async def test_a_right_on_one_is_none_on_others(http: Http, proxy: Proxy, headers: Headers) -> None:
    await allow(http, may("users", names=["jane"]), may("groups", names=["developers"]))
    code, _ = await proxy.acting(*headers)
    assert code == 403
    code, _ = await proxy.acting(USER, ("Impersonate-Group", "developers"))
    assert code == 201


async def test_a_right_on_the_accounts_of_a_namespace_ends_there(server: ApiServer, http: Http, proxy: Proxy) -> None:
    where = f"{RBAC}/namespaces/default"
    await http("POST", f"{where}/roles", {"metadata": {"name": "proxy"}, "rules": [may("serviceaccounts")]})
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "proxy"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "proxy"}
    body = {"metadata": {"name": "proxy"}, "roleRef": reference, "subjects": [subject]}
    assert (await http("POST", f"{where}/rolebindings", body)).code == 201
    assert (await proxy.acting(("Impersonate-User", "system:serviceaccount:default:robot")))[0] == 201
    code, answer = await proxy.acting(("Impersonate-User", "system:serviceaccount:kube-system:robot"))
    assert code == 403
    assert answer["message"] == (
        'serviceaccounts "robot" is forbidden: User "proxy" cannot impersonate resource "serviceaccounts" '
        'in API group "" in the namespace "kube-system"'
    )


async def test_groups_without_a_user_are_a_bad_request(http: Http) -> None:
    answer = await http("GET", "/api", headers={"Impersonate-Group": "g"})
    assert answer.code == 400
    assert "without impersonating a user" in answer.json()["message"]
    assert "Group  g" in answer.json()["message"]


async def test_rights_are_those_of_the_impersonated(http: Http) -> None:
    """An administrator who acts as jane may do no more than jane."""
    answer = await http("GET", "/api/v1/secrets", headers={"Impersonate-User": "jane"})
    assert answer.code == 403
    assert 'User "jane" cannot list resource "secrets"' in answer.json()["message"]
    allowed = await http(
        "GET", "/api/v1/secrets", headers={"Impersonate-User": "jane", "Impersonate-Group": "system:masters"}
    )
    assert allowed.code == 200


async def test_writes_are_recorded_as_the_impersonated(http: Http) -> None:
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "system:masters"}
    body = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await http("POST", path, body, headers=headers)).json()["status"]["allowed"] is True
    assert (await http("POST", path, body, headers={"Impersonate-User": "jane"})).json()["status"]["allowed"] is False
