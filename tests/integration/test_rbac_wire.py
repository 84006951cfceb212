"""RBAC over the wire: what rules match, who may grant what, aggregated roles, default roles, and access reviews."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from karmada.kube.kinds.rbac import aggregate
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.pki import ADMIN_USER
from karmada.kube.server.auth.rbac import AuthzAttributes, Decision
from karmada.kube.server.auth.user import User
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.controllers import cluster_roles
from tests.support.callers import Caller, user_certificate
from tests.support.eventually import eventually
from tests.support.wire import Answer, Http

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
ROLES = GVR(GROUP, "v1", "clusterroles")
ACCESS = "/apis/authorization.k8s.io/v1"


def rule(resources: str, verbs: str, *, groups: str = "", names: str = "") -> Obj:
    made: Obj = {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(",")}
    return {**made, "resourceNames": names.split(",")} if names else made


async def make_role(http: Http, name: str, *rules: Obj, namespace: str = "", **more: Any) -> Answer:
    where = f"{RBAC}/namespaces/{namespace}/roles" if namespace else f"{RBAC}/clusterroles"
    return await http("POST", where, {"metadata": {"name": name, **more.pop("meta", {})}, "rules": list(rules), **more})


async def bind(
    http: Http, role: str, subject: str = "User:jane", *, namespace: str = "", kind: str = "ClusterRole", name: str = ""
) -> Answer:
    where = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
    subject_kind, _, rest = subject.partition(":")
    if subject_kind == "ServiceAccount":
        account_namespace, _, account = rest.partition("/")
        who: Obj = {"kind": subject_kind, "namespace": account_namespace, "name": account}
    else:
        who = {"apiGroup": GROUP, "kind": subject_kind, "name": rest}
    reference = {"apiGroup": GROUP, "kind": kind, "name": role}
    return await http("POST", where, {"metadata": {"name": name or role}, "roleRef": reference, "subjects": [who]})


@pytest.fixture
async def jane(server: ApiServer) -> AsyncIterator[Caller]:
    async with Caller(server, **user_certificate(server, "jane", "devs")) as caller:
        yield caller


CM = "/api/v1/namespaces/default/configmaps"
MATCHING: dict[str, tuple[Obj, list[tuple[str, str, bool]]]] = {
    "verbs": (
        rule("configmaps", "get"),
        [("GET", f"{CM}/x", True), ("GET", CM, False), ("DELETE", f"{CM}/x", False), ("POST", CM, False)],
    ),
    "every verb": (rule("configmaps", "*"), [("GET", CM, True), ("DELETE", f"{CM}/x", True), ("DELETE", CM, True)]),
    "every resource": (rule("*", "get"), [("GET", f"{CM}/x", True), ("GET", "/api/v1/nodes/n/status", True)]),
    "another group": (
        rule("deployments", "get", groups="apps"),
        [("GET", "/apis/apps/v1/namespaces/default/deployments/x", True), ("GET", f"{CM}/x", False)],
    ),
    "every group": (
        rule("deployments", "get", groups="*"), [("GET", "/apis/apps/v1/namespaces/default/deployments/x", True)],
    ),
    "a subresource only": (
        rule("deployments/scale", "get", groups="apps"),
        [("GET", "/apis/apps/v1/namespaces/default/deployments/x/scale", True),
         ("GET", "/apis/apps/v1/namespaces/default/deployments/x", False)],
    ),
    "a resource without its subresources": (
        rule("deployments", "get", groups="apps"),
        [("GET", "/apis/apps/v1/namespaces/default/deployments/x/scale", False)],
    ),
    "a subresource of all": (
        rule("*/scale", "get", groups="apps"),
        [("GET", "/apis/apps/v1/namespaces/default/deployments/x/scale", True),
         ("GET", "/apis/apps/v1/namespaces/default/deployments/x", False)],
    ),
    "a name": (
        rule("configmaps", "get,list,watch,create,delete,deletecollection,update", names="x"),
        [("GET", f"{CM}/x", True), ("GET", f"{CM}/y", False), ("GET", CM, False), ("POST", CM, False),
         ("DELETE", f"{CM}/x", True), ("DELETE", CM, False), ("GET", f"{CM}?fieldSelector=metadata.name=x", True)],
    ),
    "a path": (
        {"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]},
        [("GET", "/metrics", True), ("GET", "/logs/a/b", True), ("GET", "/debug/pprof", False),
         ("POST", "/metrics", False)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("granted", "cases"), MATCHING.values(), ids=MATCHING.keys())
async def test_rules_match_what_they_say_and_nothing_else(
    http: Http, jane: Caller, granted: Obj, cases: list[tuple[str, str, bool]]
) -> None:
    assert (await make_role(http, "some", granted)).code == 201
    assert (await bind(http, "some")).code == 201
    for method, path, allowed in cases:
        code = (await jane(method, path, {} if method == "POST" else None)).code
        assert (code != 403) == allowed, (method, path, code)


async def test_a_role_binding_ends_at_its_namespace(http: Http, jane: Caller) -> None:
    await make_role(http, "reader", rule("configmaps", "get,list"))
    await bind(http, "reader", namespace="default")
    assert (await jane("GET", CM)).code == 200
    assert (await jane("GET", "/api/v1/namespaces/kube-system/configmaps")).code == 403
    assert (await jane("GET", "/api/v1/configmaps")).code == 403


@pytest.mark.parametrize("subject", ["Group:devs", "Group:system:authenticated", "User:jane"])
async def test_users_and_groups_are_subjects(http: Http, jane: Caller, subject: str) -> None:
    await make_role(http, "reader", rule("configmaps", "list"))
    await bind(http, "reader", subject)
    assert (await jane("GET", CM)).code == 200


async def test_accounts_are_subjects(server: ApiServer, http: Http) -> None:
    await make_role(http, "reader", rule("configmaps", "list"))
    await bind(http, "reader", "ServiceAccount:default/robot", namespace="default")
    await http("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    answer = await http("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}})
    async with Caller(server, token=answer.json()["status"]["token"]) as robot:
        assert (await robot("GET", CM)).code == 200
        assert (await robot("GET", "/api/v1/configmaps")).code == 403


async def test_rights_end_with_the_binding_at_once(http: Http, jane: Caller) -> None:
    await make_role(http, "reader", rule("configmaps", "list"))
    await bind(http, "reader")
    assert (await jane("GET", CM)).code == 200
    await http("DELETE", f"{RBAC}/clusterrolebindings/reader")
    assert (await jane("GET", CM)).code == 403


async def test_a_binding_to_a_role_that_is_not_there_shows_in_the_refusal(http: Http, jane: Caller) -> None:
    await bind(http, "ghost")
    answer = await jane("GET", CM)
    assert answer.code == 403
    assert answer.json()["message"] == (
        'configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace '
        '"default": RBAC: clusterrole.rbac.authorization.k8s.io "ghost" not found'
    )


async def test_refusals_come_before_everything_else(jane: Caller) -> None:
    unknown = await jane("GET", "/apis/no.such.group/v1/things")
    assert unknown.code == 403
    assert (await jane("POST", CM, b"not json")).code == 403
    path = await jane("GET", "/no/such/path")
    assert path.code == 403
    assert path.json()["message"] == 'forbidden: User "jane" cannot get path "/no/such/path"'


# granting


async def may_write_roles(http: Http, *more: Obj) -> None:
    resources = "roles,clusterroles,rolebindings,clusterrolebindings"
    await make_role(http, "writer", rule(resources, "create,update,patch,get", groups=GROUP), *more)
    assert (await bind(http, "writer")).code == 201


async def test_rights_that_the_caller_lacks_cannot_be_granted(http: Http, jane: Caller) -> None:
    await may_write_roles(http, rule("configmaps", "get"))
    answer = await make_role(jane, "x", rule("pods", "get"))
    assert answer.code == 403
    assert answer.json()["message"] == (
        'clusterroles.rbac.authorization.k8s.io "x" is forbidden: user "jane" (groups=["devs" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'
    )
    assert (await make_role(jane, "held", rule("configmaps", "get"))).code == 201
    assert (await make_role(jane, "x", rule("pods", "get"), namespace="default")).code == 403


async def test_a_role_cannot_grow_by_an_update_either(http: Http, jane: Caller) -> None:
    await may_write_roles(http, rule("configmaps", "get"))
    await make_role(jane, "held", rule("configmaps", "get"))
    role = (await jane("GET", f"{RBAC}/clusterroles/held")).json()
    role["rules"].append(rule("secrets", "get"))
    assert (await jane("PUT", f"{RBAC}/clusterroles/held", role)).code == 403
    patch = {"rules": [rule("*", "*", groups="*")]}
    answer = await jane("PATCH", f"{RBAC}/clusterroles/held", patch, content_type="application/merge-patch+json")
    assert answer.code == 403
    label = {"metadata": {"labels": {"a": "b"}}}
    unchanged = await jane("PATCH", f"{RBAC}/clusterroles/held", label, content_type="application/merge-patch+json")
    assert unchanged.code == 200


async def test_rights_in_a_namespace_can_be_granted_there(http: Http, jane: Caller) -> None:
    await make_role(
        http, "local", rule("configmaps", "get"), rule("roles", "create", groups=GROUP), namespace="default"
    )
    await bind(http, "local", namespace="default", kind="Role")
    assert (await make_role(jane, "mine", rule("configmaps", "get"), namespace="default")).code == 201
    assert (await make_role(jane, "more", rule("configmaps", "list"), namespace="default")).code == 403


async def test_binding_needs_the_rights_of_the_role_or_the_verb_bind(http: Http, jane: Caller) -> None:
    await may_write_roles(http)
    await make_role(http, "pods", rule("pods", "get"))
    refused = await bind(jane, "pods", "User:joe")
    assert refused.code == 403
    assert "is attempting to grant RBAC permissions not currently held" in refused.json()["message"]
    await make_role(http, "binder", rule("clusterroles", "bind", groups=GROUP, names="pods"))
    await bind(http, "binder")
    assert (await bind(jane, "pods", "User:joe")).code == 201
    assert (await bind(jane, "cluster-admin", "User:joe", name="evil")).code == 403


async def test_the_verb_escalate_lifts_the_limit(http: Http, jane: Caller) -> None:
    await may_write_roles(http, rule("clusterroles", "escalate", groups=GROUP))
    assert (await make_role(jane, "x", rule("*", "*", groups="*"))).code == 201


async def test_aggregation_needs_all_rights(http: Http, jane: Caller) -> None:
    await may_write_roles(http)
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    answer = await make_role(jane, "x", aggregationRule=selector)
    assert answer.code == 403
    assert "must have cluster-admin privileges to use the aggregationRule" in answer.json()["message"]
    assert (await make_role(http, "x", aggregationRule=selector)).code == 201


async def test_the_role_of_a_binding_does_not_change(http: Http) -> None:
    await make_role(http, "one", rule("pods", "get"))
    made = (await bind(http, "one")).json()
    made["roleRef"]["name"] = "two"
    answer = await http("PUT", f"{RBAC}/clusterrolebindings/one", made)
    assert answer.code == 422
    assert "cannot change roleRef" in answer.json()["message"]


# aggregated roles


def rules_of(server: ApiServer, name: str) -> list[Obj]:
    return (server.cache.get(ROLES.group_resource, "", name) or {}).get("rules") or []


async def test_many_roles_at_once_are_aggregated_in_one_pass(
    certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: Counter[str] = Counter()

    def counted(role: Obj, all_roles: list[Obj]) -> list[Any] | None:
        passes[role["metadata"]["name"]] += 1
        return aggregate(role, all_roles)

    monkeypatch.setattr(cluster_roles, "aggregate", counted)
    server = ApiServer(ServerConfig(data_dir=certificates, storage="memory://", port=0))
    await server.start()
    await eventually(lambda: passes.keys() >= {"admin", "edit", "view"})
    await server.stop()
    assert set(passes.values()) == {1}


async def test_an_aggregating_role_has_the_rules_of_those_it_selects(server: ApiServer, http: Http) -> None:
    labels = {"labels": {"into-monitoring": "true"}}
    await make_role(http, "b-part", rule("pods", "list"), meta=labels)
    await make_role(http, "a-part", rule("services", "get"), meta=labels)
    selector = {"clusterRoleSelectors": [{"matchLabels": {"into-monitoring": "true"}}]}
    await make_role(http, "monitoring", rule("secrets", "get"), aggregationRule=selector)
    wanted = [rule("services", "get"), rule("pods", "list")]
    await eventually(lambda: rules_of(server, "monitoring") == wanted, show=lambda: rules_of(server, "monitoring"))
    await make_role(http, "c-part", rule("nodes", "get"), meta=labels)
    await eventually(lambda: rules_of(server, "monitoring") == [*wanted, rule("nodes", "get")])
    overwritten = {"rules": [rule("*", "*", groups="*")]}
    await http("PATCH", f"{RBAC}/clusterroles/monitoring", overwritten, content_type="application/merge-patch+json")
    await eventually(lambda: rules_of(server, "monitoring") == [*wanted, rule("nodes", "get")])
    await http("DELETE", f"{RBAC}/clusterroles/a-part")
    await eventually(lambda: rules_of(server, "monitoring") == [rule("pods", "list"), rule("nodes", "get")])


async def test_rules_for_custom_kinds_reach_admin_edit_and_view(server: ApiServer, http: Http, jane: Caller) -> None:
    await bind(http, "view")
    labels = {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}
    granted = rule("things", "get,list", groups="example.com")
    await make_role(http, "things-viewer", granted, meta=labels)
    await eventually(lambda: granted in rules_of(server, "view") and granted in rules_of(server, "admin"))
    body = {"spec": {"resourceAttributes": {"verb": "list", "group": "example.com", "resource": "things"}}}
    review = await jane("POST", f"{ACCESS}/selfsubjectaccessreviews", body)
    assert review.json()["status"]["allowed"] is True


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [
        ("view", ["list configmaps", "get pods/log"], ["get secrets", "create configmaps", "list nodes", "get roles"]),
        ("edit", ["create configmaps", "get secrets", "delete deployments.apps"],
         ["create roles", "update resourcequotas"]),
        ("admin", ["create roles.rbac.authorization.k8s.io", "get secrets"], ["update resourcequotas", "list nodes"]),
        ("cluster-admin", ["delete nodes", "create roles", "escalate anything.example.com"], []),
    ],
)  # fmt: skip
async def test_the_roles_for_people_allow_what_they_should(
    http: Http, jane: Caller, role: str, may: list[str], may_not: list[str]
) -> None:
    await bind(http, role, name="people")
    for wanted, allowed in [*((m, True) for m in may), *((m, False) for m in may_not)]:
        verb, _, resource = wanted.partition(" ")
        resource, _, group = resource.partition(".")
        resource, _, subresource = resource.partition("/")
        requested = {
            "verb": verb,
            "resource": resource,
            "group": group,
            "subresource": subresource,
            "namespace": "default",
        }
        body = {"spec": {"resourceAttributes": requested}}
        review = (await jane("POST", f"{ACCESS}/selfsubjectaccessreviews", body)).json()["status"]
        assert review["allowed"] is allowed, (wanted, review)
        if allowed:
            by = f'ClusterRoleBinding "people" of ClusterRole "{role}" to User "jane"'
            assert review["reason"] == f"RBAC: allowed by {by}"


# default roles


async def test_default_roles_are_mended_at_the_next_start(certificates: Path, tmp_path: Path) -> None:
    """What is missing is added, what was added stays, and what is marked as not to be touched is not."""
    config = ServerConfig(data_dir=certificates, storage=f"sqlite://{tmp_path}/state.db", port=0, accept_loss=True)
    server = ApiServer(config)
    await server.start()
    http = Http(server)
    uid = (await http("GET", "/api/v1/namespaces/kube-system")).json()["metadata"]["uid"]
    view = f"{RBAC}/clusterroles/system:discovery"
    original = (await http("GET", view)).json()["rules"]
    extra = rule("pods", "get")
    merge = "application/merge-patch+json"
    assert (await http("PATCH", view, {"rules": [extra]}, content_type=merge)).code == 200
    await http("DELETE", f"{RBAC}/clusterroles/system:basic-user")
    await http("PATCH", f"{RBAC}/clusterrolebindings/system:discovery", {"subjects": None}, content_type=merge)
    off = {"metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": []}
    await http("PATCH", f"{RBAC}/clusterroles/system:public-info-viewer", off, content_type=merge)
    wrong = (await http("GET", f"{RBAC}/clusterrolebindings/system:basic-user")).json()
    await http("DELETE", f"{RBAC}/clusterrolebindings/system:basic-user")
    wrong["metadata"] = {key: wrong["metadata"][key] for key in ("name", "labels", "annotations")}
    wrong["roleRef"]["name"] = "view"
    assert (await http("POST", f"{RBAC}/clusterrolebindings", wrong)).code == 201
    await http.close()
    await server.stop()

    server = ApiServer(config)
    await server.start()
    http = Http(server)
    try:
        rules = (await http("GET", view)).json()["rules"]
        assert extra in rules
        assert {path for r in original for path in r["nonResourceURLs"]} == {
            path for r in rules for path in r.get("nonResourceURLs", ())
        }
        assert (await http("GET", f"{RBAC}/clusterroles/system:basic-user")).code == 200
        subjects = (await http("GET", f"{RBAC}/clusterrolebindings/system:discovery")).json()["subjects"]
        assert [s["name"] for s in subjects] == ["system:authenticated"]
        kept = (await http("GET", f"{RBAC}/clusterroles/system:public-info-viewer")).json()
        assert not kept["rules"]
        binding = (await http("GET", f"{RBAC}/clusterrolebindings/system:basic-user")).json()
        assert binding["roleRef"]["name"] == "system:basic-user"
        assert (await http("GET", "/api/v1/namespaces/kube-system")).json()["metadata"]["uid"] == uid
    finally:
        await http.close()
        await server.stop()


async def test_anonymous_sees_health_and_version_and_nothing_else(http: Http) -> None:
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert (await http("GET", path, anonymous=True)).code == 200, path
    for path in ("/api", "/apis", "/openapi/v2", "/metrics", "/api/v1/namespaces"):
        answer = await http("GET", path, anonymous=True)
        assert answer.code == 403, path
        assert 'User "system:anonymous" cannot' in answer.json()["message"]


# reviews


async def test_access_of_others_can_be_requested(http: Http) -> None:
    await make_role(http, "reader", rule("configmaps", "get", names="x"))
    await bind(http, "reader", "Group:readers")
    requested = {"verb": "get", "resource": "configmaps", "namespace": "default", "name": "x"}
    body: Obj = {"spec": {"user": "somebody", "groups": ["readers"], "resourceAttributes": requested}}
    status = (await http("POST", f"{ACCESS}/subjectaccessreviews", body)).json()["status"]
    assert status == {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "reader" of ClusterRole "reader" to Group "readers"',
    }
    body["spec"]["resourceAttributes"] = {**requested, "name": "y"}
    assert (await http("POST", f"{ACCESS}/subjectaccessreviews", body)).json()["status"]["allowed"] is False
    local = {"metadata": {"namespace": "default"}, **body}
    answer = await http("POST", f"{ACCESS}/namespaces/default/localsubjectaccessreviews", local)
    assert answer.code == 201
    body["spec"] = {
        "user": "x",
        "nonResourceAttributes": {"path": "/healthz", "verb": "get"},
        "groups": ["system:authenticated"],
    }
    assert (await http("POST", f"{ACCESS}/subjectaccessreviews", body)).json()["status"]["allowed"] is True
    nobody = await http("POST", f"{ACCESS}/subjectaccessreviews", {"spec": {"resourceAttributes": requested}})
    assert nobody.code == 422


async def test_one_can_list_what_one_may_do(http: Http, jane: Caller) -> None:
    await make_role(http, "reader", rule("configmaps", "get"))
    await bind(http, "reader", namespace="default")
    answer = await jane("POST", f"{ACCESS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    status = answer.json()["status"]
    assert rule("configmaps", "get") in status["resourceRules"]
    assert any("/healthz" in r["nonResourceURLs"] for r in status["nonResourceRules"])
    assert status["incomplete"] is False
    other = await jane("POST", f"{ACCESS}/selfsubjectrulesreviews", {"spec": {"namespace": "kube-system"}})
    assert rule("configmaps", "get") not in other.json()["status"]["resourceRules"]


async def test_a_right_to_one_name_cannot_be_stretched_by_a_tricky_field_selector(
    server: ApiServer, http: Http
) -> None:
    """What the authoriser takes for the name must be what the list is narrowed to."""
    for name in ("mine", "theirs"):
        body = {"metadata": {"name": name}, "stringData": {"a": "b"}}
        assert (await http("POST", "/api/v1/namespaces/default/secrets", body)).code == 201
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"], "resourceNames": ["mine"]}
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    assert (await http("POST", f"{rbac}/roles", {"metadata": {"name": "one"}, "rules": [rule]})).code == 201
    binding = {
        "metadata": {"name": "one"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"},
        "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    assert (await http("POST", f"{rbac}/rolebindings", binding)).code == 201
    eve = {"Impersonate-User": "eve"}

    async def listed(selector: str) -> int | list[str]:
        path = f"/api/v1/namespaces/default/secrets?fieldSelector={quote(selector)}"
        answer = await http("GET", path, headers=eve)
        return [o["metadata"]["name"] for o in answer.json()["items"]] if answer.code == 200 else answer.code

    assert await listed("metadata.name=mine") == ["mine"]
    assert await listed("metadata.name=theirs") == 403
    assert await listed(r"metadata.namespace!=x\,metadata.name=mine") == 403
    assert await listed("metadata.name=mine,metadata.name=theirs") in ([], 403)
    assert await listed("metadata.name!=nothing") == 403


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("POST", {"metadata": {"name": "x"}})])
async def test_a_request_is_authorised_once(
    server: ApiServer, http: Http, monkeypatch: pytest.MonkeyPatch, method: str, body: Obj | None
) -> None:
    decided: list[str] = []
    decide = server.authorizer.decide

    async def counted(user: User, request: AuthzAttributes) -> Decision:
        if user.name == ADMIN_USER:
            decided.append(request.verb)
        return await decide(user, request)

    monkeypatch.setattr(server.authorizer, "decide", counted)
    answer = await http(method, "/api/v1/namespaces/default/configmaps", body)
    assert answer.code in (200, 201)
    assert decided == ["list" if method == "GET" else "create"]
