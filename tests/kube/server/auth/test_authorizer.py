from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.objects.errors import ServiceUnavailable
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.messages import denied
from karmada.kube.server.auth.rbac import Authorizer, AuthzAttributes, Decision
from karmada.kube.server.auth.user import User
from tests.kube.server.auth.auth_fakes import FakeReader, authorizer, binding, role, rule, urls
from tests.support.cases import cases

JANE = User("jane", groups=("dev", "system:authenticated"))


def wants(verb: str, resource: str, namespace: str = "", name: str = "", group: str = "") -> AuthzAttributes:
    plural, _, subresource = resource.partition("/")
    return AuthzAttributes(verb, group, "v1", plural, subresource, namespace, name)


def path(verb: str, url: str) -> AuthzAttributes:
    return AuthzAttributes(verb, path=url, is_resource=False)


def calls_of(work: Callable[[], object]) -> int:
    """How many Python functions are called meanwhile."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def with_rules(*rules: Obj) -> Authorizer:
    return authorizer(FakeReader([role("r", *rules), binding("b", "ClusterRole/r", "user:jane")]))


@cases(
    (rule("get", "", "pods"), wants("get", "pods", "ns", "x"), True),
    (rule("get", "", "pods"), wants("list", "pods", "ns"), False),
    (rule("get", "", "pods"), wants("get", "secrets", "ns"), False),
    (rule("get", "", "pods"), wants("get", "pods", group="apps"), False),
    (rule("get", "", "pods"), wants("get", "pods/log", "ns", "x"), False),
    (rule("get", "", "pods/log"), wants("get", "pods/log", "ns", "x"), True),
    (rule("get", "", "pods/log"), wants("get", "pods", "ns", "x"), False),
    (rule("get", "", "*/log"), wants("get", "pods/log", "ns", "x"), True),
    (rule("get", "", "*/log"), wants("get", "pods", "ns", "x"), False),
    (rule("get", "", "*/log"), wants("get", "pods/catalog", "ns", "x"), False),
    (rule("get", "", "*"), wants("get", "pods/log", "ns", "x"), True),
    (rule("*", "*", "*"), wants("anything", "widgets/foo", group="example.com"), True),
    (rule("get", "", "pods", "a b"), wants("get", "pods", "ns", "a"), True),
    (rule("get", "", "pods", "a b"), wants("get", "pods", "ns", "c"), False),
    (rule("* ", "", "pods", "a"), wants("create", "pods", "ns"), False),
    (rule("*", "", "pods", "a"), wants("list", "pods", "ns"), False),
    (rule("*", "", "pods", "a"), wants("list", "pods", "ns", "a"), True),
    (rule("*", "", "pods", "a"), wants("deletecollection", "pods", "ns"), False),
    (urls("get", "/healthz"), wants("get", "pods"), False),
    (rule("*", "*", "*"), path("get", "/metrics"), False),
    (urls("get", "/metrics"), path("get", "/metrics"), True),
    (urls("get", "/metrics"), path("post", "/metrics"), False),
    (urls("get", "/metrics"), path("get", "/metrics/slis"), False),
    (urls("get", "/metrics*"), path("get", "/metrics/slis"), True),
    (urls("get", "/apis/*"), path("get", "/apis/apps"), True),
    (urls("get", "/apis/*"), path("get", "/apis"), False),
    (urls("*", "*"), path("delete", "/anything"), True),
)
def test_rules_match(given_rule: Obj, request_: AuthzAttributes, allowed: bool) -> None:
    assert with_rules(given_rule).authorize(JANE, request_).allowed is allowed


@cases(
    ("user:jane", JANE, True),
    ("user:dev", JANE, False),
    ("group:dev", JANE, True),
    ("group:jane", JANE, False),
    ("sa:ns/bot", User("system:serviceaccount:ns:bot"), True),
    ("sa:ns/bot", User("system:serviceaccount:other:bot"), False),
    ("user:system:serviceaccount:ns:bot", User("system:serviceaccount:ns:bot"), True),
    ("group:system:unauthenticated", User("system:anonymous", groups=("system:unauthenticated",)), True),
    ("group:x", User("boss", groups=("system:masters",)), True),
)
def test_subjects_match(subject: str, user: User, allowed: bool) -> None:
    reader = FakeReader([role("r", rule("get", "", "pods")), binding("b", "ClusterRole/r", subject)])
    assert authorizer(reader).authorize(user, wants("get", "pods", "ns")).allowed is allowed


def test_a_role_binding_counts_in_its_namespace_only() -> None:
    reader = FakeReader([
        role("r", rule("get", "", "pods"), urls("get", "/x")),
        binding("b", "ClusterRole/r", "user:jane", "sa:/bot", namespace="one"),
    ])  # fmt: skip
    access = authorizer(reader)
    assert access.authorize(JANE, wants("get", "pods", "one")).allowed
    assert not access.authorize(JANE, wants("get", "pods", "two")).allowed
    assert not access.authorize(JANE, wants("get", "pods")).allowed
    assert not access.authorize(JANE, path("get", "/x")).allowed
    assert access.authorize(User("system:serviceaccount:one:bot"), wants("get", "pods", "one")).allowed


def test_the_reason_says_by_which_binding_access_was_given() -> None:
    reader = FakeReader([
        role("wide", rule("get", "", "pods")),
        role("narrow", rule("get", "", "pods", "x"), namespace="ns"),
        binding("bound", "ClusterRole/wide", "group:dev"),
        binding("local", "Role/narrow", "sa:/bot", namespace="ns"),
        binding("other", "ClusterRole/wide", "sa:ns/bot", namespace="else"),
    ])  # fmt: skip
    access = authorizer(reader)
    bot = User("system:serviceaccount:ns:bot")
    assert access.authorize(JANE, wants("get", "pods", "ns")) == Decision(
        True, 'RBAC: allowed by ClusterRoleBinding "bound" of ClusterRole "wide" to Group "dev"'
    )
    assert access.authorize(bot, wants("get", "pods", "ns", "x")) == Decision(
        True, 'RBAC: allowed by RoleBinding "local/ns" of Role "narrow" to ServiceAccount "bot/ns"'
    )
    assert access.authorize(bot, wants("get", "pods", "else")).reason == (
        'RBAC: allowed by RoleBinding "other/else" of ClusterRole "wide" to ServiceAccount "bot/ns"'
    )
    assert access.authorize(User("a", groups=("system:masters",)), wants("get", "pods")) == Decision(True, "")


def test_a_name_gets_the_first_rule_that_covers_it() -> None:
    reader = FakeReader([
        role("narrow", rule("get", "", "pods", "x y")),
        role("wide", rule("get", "", "pods")),
        binding("a", "ClusterRole/narrow", "user:jane"),
        binding("b", "ClusterRole/wide", "user:jane"),
    ])  # fmt: skip
    access = authorizer(reader)
    assert '"narrow"' in access.authorize(JANE, wants("get", "pods", "ns", "x")).reason
    assert '"wide"' in access.authorize(JANE, wants("get", "pods", "ns", "z")).reason
    assert '"wide"' in access.authorize(JANE, wants("get", "pods", "ns")).reason


def test_missing_roles_are_named_in_the_denial() -> None:
    reader = FakeReader([binding("a", "ClusterRole/gone", "user:jane")])
    access = authorizer(reader)
    one = access.authorize(JANE, wants("get", "pods", "ns"))
    assert one == Decision(False, 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found')
    reader.put(binding("b", "Role/lost", "user:jane", namespace="ns"))
    assert access.authorize(JANE, wants("get", "pods", "ns")).reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, '
        'role.rbac.authorization.k8s.io "lost" not found]'
    )
    assert access.authorize(JANE, path("get", "/x")).reason == one.reason


@cases("/healthz", "/livez/ping", "/readyz")
def test_health_can_be_read_by_anyone(url: str) -> None:
    access = authorizer(FakeReader())
    nobody = User("system:anonymous", groups=("system:unauthenticated",))
    assert access.authorize(nobody, path("get", url)).allowed
    assert not access.authorize(nobody, path("post", url)).allowed
    assert not access.authorize(nobody, path("get", "/metrics")).allowed


def test_every_change_of_a_role_or_binding_counts_at_once() -> None:
    reader = FakeReader()
    access = authorizer(reader)
    request = wants("get", "pods", "ns", "x")

    def allowed() -> bool:
        return access.authorize(JANE, request).allowed

    assert not allowed()
    reader.put(binding("b", "ClusterRole/r", "user:jane"))
    assert not allowed()
    reader.put(role("r", rule("get", "", "pods")))
    assert allowed()
    reader.put(role("r", rule("list", "", "pods")))
    assert not allowed()
    reader.put(role("r", rule("get", "", "pods")))
    reader.put(binding("b", "ClusterRole/r", "user:bob", "group:dev"))
    assert allowed()
    reader.put(binding("b", "ClusterRole/r", "user:bob"))
    assert not allowed()
    reader.put(binding("b", "ClusterRole/r", "user:jane"))
    assert allowed()
    reader.remove("ClusterRoleBinding", "", "b")
    assert not allowed()


def test_a_changed_group_set_is_decided_anew() -> None:
    reader = FakeReader([role("r", rule("get", "", "pods")), binding("b", "ClusterRole/r", "group:dev")])
    access, request = authorizer(reader), wants("get", "pods", "ns")
    for groups, allowed in [(("dev",), True), (("ops",), False), ((), False), (("ops", "dev"), True), (("dev",), True)]:
        assert access.authorize(User("jane", groups=groups), request).allowed is allowed


def test_an_answer_outlives_what_is_written_of_others() -> None:
    reader = FakeReader(
        [role("r", rule("get", "", "pods")), binding("b", "ClusterRole/r", "user:jane", namespace="ns")]
    )
    access, request = authorizer(reader), wants("get", "pods", "ns")
    first = access.authorize(JANE, request)
    reader.put(binding("others", "ClusterRole/r", "user:bob", "group:ops"))
    reader.put(binding("b", "ClusterRole/r", "user:jane", namespace="elsewhere"))
    reader.put(role("r", rule("list", "", "pods"), namespace="ns"))
    assert access.authorize(JANE, request) is first
    reader.put(role("r", rule("get", "", "pods")))
    assert access.authorize(JANE, request) is not first


def test_what_could_not_be_read_counts_once_it_can() -> None:
    reader = FakeReader([role("r", rule("get", "", "pods")), binding("b", "ClusterRole/r", "user:jane")])
    access, request = authorizer(reader), wants("get", "pods", "ns")
    assert access.authorize(JANE, request).allowed
    reader.broken = True
    reader.put(binding("b", "ClusterRole/r", "user:bob"))
    with pytest.raises(ServiceUnavailable):
        access.authorize(JANE, request)
    reader.broken = False
    assert not access.authorize(JANE, request).allowed


def test_what_is_remembered_of_writes_is_bounded() -> None:
    reader = FakeReader([role("r", rule("get", "", "pods")), binding("b", "ClusterRole/r", "user:jane")])
    access, request = authorizer(reader), wants("get", "pods", "ns")
    assert access.authorize(JANE, request).allowed
    for number in range(5):
        users = [f"user:{number}-{user}" for user in range(4_000)]
        reader.put(binding("many", "ClusterRole/r", *users))
        assert access.authorize(JANE, request).allowed
        assert len(access._written) <= 8_192
    reader.remove("ClusterRoleBinding", "", "b")
    assert not access.authorize(JANE, request).allowed


def test_a_write_costs_as_much_among_many_bindings_as_among_few() -> None:
    def cost(others: int) -> list[int]:
        bindings = [binding(f"b{n}", "ClusterRole/r", f"user:u{n}", namespace=f"n{n % 9}") for n in range(others)]
        reader = FakeReader([role("r", rule("get", "", "pods")), *bindings])
        access, request = authorizer(reader), wants("get", "pods", "n1")
        users = [User(f"u{n}") for n in range(20)]

        def decide() -> list[bool]:
            return [access.authorize(user, request).allowed for user in users]

        decide()
        reader.put(binding("new", "ClusterRole/r", "user:u3", namespace="n1"))
        costs = [calls_of(decide)]
        reader.put(role("r", rule("list", "", "pods")))
        costs.append(calls_of(decide))
        assert reader.lists == 2
        return costs

    assert cost(100) == cost(200)


# --- texts


@cases(
    (
        wants("get", "deployments", "ns", "web", "apps"),
        "",
        'deployments.apps "web" is forbidden: User "jane" cannot get resource "deployments" in API group "apps" '
        'in the namespace "ns"',
        {"name": "web", "group": "apps", "kind": "deployments"},
    ),
    (
        wants("list", "pods/log"),
        "",
        'pods is forbidden: User "jane" cannot list resource "pods/log" in API group "" at the cluster scope',
        {"kind": "pods"},
    ),
    (
        path("get", "/x<y>&"),
        'RBAC: clusterrole.rbac.authorization.k8s.io "r" not found',
        'forbidden: User "jane" cannot get path "/x&lt;y&gt;&amp;": '
        'RBAC: clusterrole.rbac.authorization.k8s.io "r" not found',
        {},
    ),
)
def test_denials_have_the_known_text(request_: AuthzAttributes, reason: str, message: str, details: Obj) -> None:
    status = denied(JANE, request_, reason).status()
    assert (status["code"], status["reason"], status["message"]) == (403, "Forbidden", message)
    assert status.get("details") == details


# --- against a naive evaluation

NAMES = ["a", "b"]
VERBS = ["get", "list", "*"]
RESOURCES = ["pods", "pods/log", "*/log", "secrets", "*"]
SUBJECTS = ["user:jane", "user:bob", "group:dev", "group:ops", "sa:one/bot"]
USERS = [JANE, User("bob", groups=("ops",)), User("system:serviceaccount:one:bot", groups=("dev",))]


def some(values: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True).map(" ".join)


RULES = st.builds(rule, some(VERBS), st.sampled_from(["", "apps", ",apps", "*"]), some(RESOURCES),
                  st.one_of(st.just(""), some(NAMES)))  # fmt: skip
PLACES = st.sampled_from(["", "one", "two"])


@st.composite
def worlds(draw: st.DrawFn) -> list[Obj]:
    objects: list[Obj] = []
    for name in ("r1", "r2"):
        objects.append(role(name, *draw(st.lists(RULES, max_size=2))))
        objects.append(role(name, *draw(st.lists(RULES, max_size=2)), namespace="one"))
    for number in range(draw(st.integers(0, 4))):
        place = draw(PLACES)
        kind = draw(st.sampled_from(["ClusterRole", "Role"])) if place else "ClusterRole"
        subjects = draw(st.lists(st.sampled_from(SUBJECTS), max_size=3))
        to = f"{kind}/{draw(st.sampled_from(['r1', 'r2', 'gone']))}"
        objects.append(binding(f"b{number}", to, *subjects, namespace=place))
    return objects


def naive(objects: list[Obj], user: User, wanted: AuthzAttributes) -> bool:
    def is_subject(subject: Obj) -> bool:
        if subject["kind"] == "Group":
            return subject["name"] in user.groups
        if subject["kind"] == "User":
            return bool(subject["name"] == user.name)
        return f"system:serviceaccount:{subject['namespace']}:{subject['name']}" == user.name

    def covers(r: Any) -> bool:
        full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
        return (
            bool({"*", wanted.verb} & set(r["verbs"]))
            and bool({"*", wanted.group} & set(r["apiGroups"]))
            and any(x in ("*", full) or (wanted.subresource and x == f"*/{wanted.subresource}") for x in r["resources"])
            and (not r.get("resourceNames") or wanted.name in r["resourceNames"])
        )

    roles = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in objects if "rules" in o}
    for bound in (o for o in objects if "roleRef" in o):
        place = bound["metadata"].get("namespace", "")
        if place not in ("", wanted.namespace) or not any(map(is_subject, bound["subjects"])):
            continue
        kind = bound["roleRef"]["kind"]
        found = roles.get((kind, place if kind == "Role" else "", bound["roleRef"]["name"]))
        if found and any(map(covers, found["rules"])):
            return True
    return False


ALL_REQUESTS = [
    wants(verb, resource, namespace, name, group)
    for verb, resource, namespace, name, group in itertools.product(
        ["get", "list"], ["pods", "pods/log", "secrets"], ["", "one", "two"], ["", "a", "c"], ["", "apps"]
    )
]


@settings(max_examples=120)
@given(worlds(), worlds())
def test_answers_equal_a_naive_evaluation_also_after_changes(first: list[Obj], second: list[Obj]) -> None:
    reader = FakeReader(first)
    access = authorizer(reader)
    for user, wanted in itertools.product(USERS, ALL_REQUESTS):
        assert access.authorize(user, wanted).allowed is naive(first, user, wanted)
    now = {(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in first}
    requests = itertools.cycle(ALL_REQUESTS)
    for key in list(now):
        del now[key]
        reader.remove(*key)
        for user, wanted in itertools.product(USERS, itertools.islice(requests, 11)):
            assert access.authorize(user, wanted).allowed is naive(list(now.values()), user, wanted)
    for obj in second:
        now[(obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"])] = obj
        reader.put(obj)
        for user, wanted in itertools.product(USERS, itertools.islice(requests, 11)):
            assert access.authorize(user, wanted).allowed is naive(list(now.values()), user, wanted)
