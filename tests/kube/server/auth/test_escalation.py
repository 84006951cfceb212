from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.kinds.rbac import GROUP
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.escalation import (
    FULL_AUTHORITY,
    EscalationGuard,
    TooManyRules,
    break_down,
    compact,
    covers,
    describe_rule,
    escalation_error,
    uncovered,
)
from karmada.kube.server.auth.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, Rule
from karmada.kube.server.auth.user import User
from tests.kube.server.auth.auth_fakes import FakeReader, authorizer, binding, role, rule, urls
from tests.support.cases import cases

ME = User("u", groups=("g", "h"))
MASTER = User("m", groups=("system:masters",))
HELD = rule("get list", "", "pods")


def check(
    obj: Obj, *held: Obj, old: Obj | None = None, user: User = ME, namespace: str = "", more: tuple[Obj, ...] = ()
) -> ApiError | None:
    reader = FakeReader([role("mine", *held), binding("mine", "ClusterRole/mine", "user:u"), *more])
    resources = {
        "Role": ROLES,
        "ClusterRole": CLUSTER_ROLES,
        "RoleBinding": ROLE_BINDINGS,
        "ClusterRoleBinding": CLUSTER_ROLE_BINDINGS,
    }
    return escalation_error(authorizer(reader), user, resources[obj["kind"]], namespace, obj, old)


@cases(
    (rule("get list", "", "pods"), rule("get", "", "pods"), True),
    (rule("get", "", "pods"), rule("get list", "", "pods"), False),
    (rule("get", "", "pods"), rule("*", "", "pods"), False),
    (rule("*", "*", "*"), rule("get", "apps", "x/y"), True),
    (rule("get", "", "*"), rule("get", "", "*"), True),
    (rule("get", "", "pods"), rule("get", "", "*"), False),
    (rule("get", "", "*/log"), rule("get", "", "pods/log"), True),
    (rule("get", "", "*/log"), rule("get", "", "pods"), False),
    (rule("get", "", "*/log"), rule("get", "", "pods/exec"), False),
    (rule("get", "", "pods"), rule("get", "", "pods/exec"), False),
    (rule("get", "", "pods/log"), rule("get", "", "pods/exec"), False),
    (rule("get", "", "pods", "a"), rule("get", "", "pods"), False),
    (rule("get", "", "pods", "a b"), rule("get", "", "pods", "a"), True),
    (rule("get", "", "pods", "a"), rule("get", "", "pods", "a b"), False),
    (rule("get", "", "pods"), rule("get", "", "pods", "a"), True),
    (urls("get", "/api/*"), urls("get", "/api/v1"), True),
    (urls("get", "/api/v1"), urls("get", "/api/*"), False),
    (urls("get", "*"), urls("get", "/x*"), True),
    (rule("*", "*", "*"), urls("get", "/x"), False),
    (urls("*", "*"), rule("get", "", "pods"), False),
)
def test_rules_cover_one_another(held: Obj, wanted: Obj, covered: bool) -> None:
    assert (not uncovered([held], [wanted])) is covered


def some(*values: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True).map(" ".join)


RULES = st.builds(
    rule, some("get", "list", "*"), st.sampled_from(["", "apps", ",apps"]), some("pods", "pods/log", "*"),
    st.one_of(st.just(""), some("a", "b")),
)  # fmt: skip


@given(RULES)
def test_a_rule_covers_all_its_parts_and_they_cover_it(whole: Obj) -> None:
    parts = break_down(whole)
    assert all(covers(whole, part) for part in parts)
    assert not uncovered(parts, [whole])
    assert not uncovered(compact(parts), [whole])


def test_missing_permissions_are_put_together_and_sorted() -> None:
    new = role("x", rule("get watch create", "", "pods"), urls("get", "/x"), rule("get", "apps", "y", "n"))
    error = check(new, HELD)
    assert error is not None
    assert error.http_code == 403
    assert error.message == (
        'clusterroles.rbac.authorization.k8s.io "x" is forbidden: user "u" (groups=["g" "h"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["watch" "create"]}\n'
        '{APIGroups:["apps"], Resources:["y"], ResourceNames:["n"], Verbs:["get"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}'
    )


def test_unresolved_roles_are_reported_with_the_refusal() -> None:
    error = check(role("x", rule("get", "", "y")), HELD, more=(binding("broken", "ClusterRole/gone", "user:u"),))
    assert error is not None
    assert error.message.endswith('; resolution errors: [clusterrole.rbac.authorization.k8s.io "gone" not found]')


@cases(
    ([], ME, True),
    ([HELD], ME, False),
    ([rule("escalate", GROUP, "clusterroles")], ME, False),
    ([rule("escalate", GROUP, "clusterroles", "x")], ME, True),
    ([rule("escalate", GROUP, "roles")], ME, True),
    ([], MASTER, False),
)
def test_whoever_makes_a_role_must_hold_it_or_may_escalate(held: list[Obj], user: User, refused: bool) -> None:
    assert (check(role("x", HELD), *held, user=user) is not None) is refused


def test_the_name_counts_for_escalation_by_updates() -> None:
    old = role("x")
    assert check(role("x", HELD), rule("escalate", GROUP, "clusterroles", "x"), old=old) is None
    assert check(role("y", HELD), rule("escalate", GROUP, "clusterroles", "x"), old=role("y")) is not None


def test_rights_in_a_namespace_allow_roles_there_only() -> None:
    more = (role("local", HELD, namespace="one"), binding("local", "Role/local", "group:g", namespace="one"))
    assert check(role("x", HELD, namespace="one"), namespace="one", more=more) is None
    assert check(role("x", HELD, namespace="two"), namespace="two", more=more) is not None
    assert check(role("x", HELD), more=more) is not None


@cases("new", "old")
def test_aggregation_needs_all_rights(aggregating: str) -> None:
    plain = role("x")
    with_rule = role("x", aggregationRule={"clusterRoleSelectors": [{}]})
    new, old = (with_rule, None) if aggregating == "new" else ({**plain, "rules": [HELD]}, with_rule)
    error = check(new, HELD, old=old)
    assert error is not None
    assert error.message.endswith("must have cluster-admin privileges to use the aggregationRule")
    assert check(new, rule("*", "*", "*"), urls("*", "*"), old=old) is None


@cases(
    ([], True),
    ([HELD], False),
    ([rule("bind", GROUP, "clusterroles")], False),
    ([rule("bind", GROUP, "clusterroles", "target")], False),
    ([rule("bind", GROUP, "clusterroles", "other")], True),
    ([rule("bind", GROUP, "roles")], True),
)
def test_whoever_binds_a_role_must_hold_it_or_may_bind_it(held: list[Obj], refused: bool) -> None:
    for namespace in ("", "ns"):
        new = binding("b", "ClusterRole/target", "user:x", namespace=namespace)
        error = check(new, *held, namespace=namespace, more=(role("target", HELD),))
        assert (error is not None) is refused
        if error is not None:
            resource = "rolebindings" if namespace else "clusterrolebindings"
            assert error.message.startswith(f'{resource}.rbac.authorization.k8s.io "b" is forbidden: user "u"')


def test_binding_a_role_that_does_not_exist_needs_the_right_to_bind() -> None:
    new = binding("b", "Role/gone", "user:x", namespace="ns")
    error = check(new, HELD, namespace="ns")
    assert error is not None
    assert (error.http_code, error.message) == (404, 'roles.rbac.authorization.k8s.io "gone" not found')
    assert check(new, rule("bind", GROUP, "roles"), namespace="ns") is None


def test_the_garbage_collector_may_touch_what_it_needs() -> None:
    old = role("x", HELD)
    new = {**old, "metadata": {"name": "x", "finalizers": ["f"], "ownerReferences": [{}], "resourceVersion": "2"}}
    assert check(new, old=old) is None
    labelled = {**old, "metadata": {"name": "x", "labels": {"a": "b"}}}
    assert check(labelled, old=old) is not None


def test_rules_are_shown_compactly() -> None:
    assert describe_rule(rule("get", "", "pods")) == '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'


async def test_the_plugin_guards_rbac_kinds_only() -> None:
    from karmada.kube.kinds.resource import Resource
    from karmada.kube.objects.gvk import GVK, GroupResource
    from karmada.kube.schema.node import Node
    from karmada.kube.server.admission.interface import Attributes

    def attributes(kind: str, plural: str, obj: Obj, operation: str = "CREATE", group: str = GROUP) -> Attributes:
        gvk = GVK(group, "v1", kind)
        resource = Resource(
            gvk=gvk,
            plural=plural,
            namespaced=False,
            schema=Node,
            storage=gvk,
            storage_resource=GroupResource(group, plural),
        )
        return Attributes(operation, resource, "", "", "x", obj, None, ME)

    guard = EscalationGuard(authorizer(FakeReader()))
    refused = attributes("ClusterRole", "clusterroles", role("x", HELD))
    assert guard.handles(refused)
    with pytest.raises(ApiError):
        await guard.validate(refused)
    await guard.validate(attributes("ClusterRole", "clusterroles", role("x")))
    assert not guard.handles(attributes("ClusterRole", "clusterroles", role("x"), "DELETE"))
    assert not guard.handles(attributes("Pod", "pods", {}, group=""))


def wide(size: int) -> Rule:
    return {
        "apiGroups": [f"g{n}" for n in range(size)],
        "resources": [f"r{n}" for n in range(size)],
        "verbs": [f"v{n}" for n in range(size)],
    }


def test_a_wide_rule_is_refused_without_multiplying_it() -> None:
    held = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}]
    with pytest.raises(TooManyRules, match="216000 combinations"):
        uncovered(held, [wide(60)])


def test_a_wide_rule_that_one_held_rule_grants_needs_no_multiplying() -> None:
    assert uncovered(FULL_AUTHORITY, [wide(500)]) == []


def test_a_rule_for_resources_and_paths_is_compared_part_by_part() -> None:
    mixed = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "nonResourceURLs": ["/healthz"]}
    held = [{"nonResourceURLs": ["/healthz"], "verbs": ["get"]}]
    assert uncovered(held, [mixed]) == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
