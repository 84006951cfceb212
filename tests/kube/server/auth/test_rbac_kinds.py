from __future__ import annotations

from typing import Any

from karmada.kube.kinds.rbac import GROUP, STRATEGIES, aggregate
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.bootstrap_policy import (
    AUTOUPDATE,
    bootstrap_objects,
    missing_rules,
    must_recreate,
    reconcile,
)
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.user import User
from tests.kube.server.auth.auth_fakes import FakeReader, authorizer, binding, role, rule, urls
from tests.support.cases import cases


def errors(kind: str, obj: Obj) -> list[str]:
    return [str(e) for e in STRATEGIES[kind].validate(obj)]


@cases(
    ("Role", rule("get", "", "pods"), []),
    ("ClusterRole", urls("get", "/x"), []),
    (
        "Role",
        {"apiGroups": [""], "resources": ["pods"]},
        ["rules[0].verbs: Required value: verbs must contain at least one value"],
    ),
    (
        "Role",
        {"verbs": ["get"], "resources": ["pods"]},
        ["rules[0].apiGroups: Required value: resource rules must supply at least one api group"],
    ),
    (
        "ClusterRole",
        {"verbs": ["get"], "apiGroups": [""]},
        ["rules[0].resources: Required value: resource rules must supply at least one resource"],
    ),
    (
        "Role",
        urls("get", "/x"),
        ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
    ),
    (
        "ClusterRole",
        {**urls("get", "/x"), "resources": ["pods"]},
        [
            'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
            "rules cannot apply to both regular resources and non-resource URLs"
        ],
    ),
)
def test_rules_are_validated(kind: str, bad: Obj, expected: list[str]) -> None:
    assert errors(kind, {"metadata": {"name": "x"}, "rules": [bad]}) == expected


@cases(
    ([{"matchLabels": {"a": "b"}}], None),
    (
        [],
        "aggregationRule.clusterRoleSelectors: Required value: "
        "at least one clusterRoleSelector required if aggregationRule is non-nil",
    ),
    (
        [{"matchExpressions": [{"key": "a", "operator": "Near"}]}],
        "aggregationRule.clusterRoleSelectors[0]: Invalid value: "
        '{"matchExpressions":[{"key":"a","operator":"Near"}]}: invalid label selector.',
    ),
)
def test_aggregation_rules_are_validated(selectors: list[Any], expected: str | None) -> None:
    found = errors("ClusterRole", role("x", aggregationRule={"clusterRoleSelectors": selectors}))
    assert found == ([] if expected is None else [expected])


def changed(kind: str, **changes: Any) -> Obj:
    namespace = "ns" if kind == "RoleBinding" else ""
    made = binding("b", "ClusterRole/r", "user:x", namespace=namespace)
    ref = {**made["roleRef"], **changes.pop("ref", {})}
    return {**made, "roleRef": ref, **changes}


@cases(
    ("RoleBinding", {}, []),
    ("RoleBinding", {"subjects": []}, []),
    ("RoleBinding", {"ref": {"kind": "Role"}}, []),
    ("RoleBinding", {"subjects": [{"kind": "ServiceAccount", "name": "bot"}]}, []),
    (
        "ClusterRoleBinding",
        {"ref": {"kind": "Role"}},
        ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
    ),
    (
        "RoleBinding",
        {"ref": {"kind": "Thing"}},
        ['roleRef.kind: Unsupported value: "Thing": supported values: "Role", "ClusterRole"'],
    ),
    (
        "RoleBinding",
        {"ref": {"apiGroup": "x"}},
        [f'roleRef.apiGroup: Unsupported value: "x": supported values: "{GROUP}"'],
    ),
    ("RoleBinding", {"ref": {"name": ""}}, ["roleRef.name: Required value"]),
    ("RoleBinding", {"ref": {"name": "a/b"}}, ["roleRef.name: Invalid value: \"a/b\": may not contain '/'"]),
    ("RoleBinding", {"subjects": [{"kind": "User", "apiGroup": GROUP}]}, ["subjects[0].name: Required value"]),
    (
        "RoleBinding",
        {"subjects": [{"kind": "User", "name": "x", "apiGroup": "y"}]},
        [f'subjects[0].apiGroup: Unsupported value: "y": supported values: "{GROUP}"'],
    ),
    (
        "RoleBinding",
        {"subjects": [{"kind": "ServiceAccount", "name": "x", "apiGroup": GROUP}]},
        [f'subjects[0].apiGroup: Unsupported value: "{GROUP}": supported values: ""'],
    ),
    (
        "ClusterRoleBinding",
        {"subjects": [{"kind": "ServiceAccount", "name": "x"}]},
        ["subjects[0].namespace: Required value"],
    ),
    (
        "RoleBinding",
        {"subjects": [{"kind": "Robot", "name": "x"}]},
        ['subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"'],
    ),
)
def test_bindings_are_validated(kind: str, changes: Obj, expected: list[str]) -> None:
    assert errors(kind, changed(kind, **changes)) == expected


def test_bindings_get_their_api_groups() -> None:
    made: Obj = {
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [
            {"kind": "User", "name": "a"},
            {"kind": "Group", "name": "b"},
            {"kind": "ServiceAccount", "name": "c"},
        ],
    }
    STRATEGIES["RoleBinding"].default(made)
    assert made["roleRef"]["apiGroup"] == GROUP
    assert [s.get("apiGroup") for s in made["subjects"]] == [GROUP, GROUP, None]


def test_the_role_of_a_binding_never_changes() -> None:
    old, new = changed("RoleBinding"), changed("RoleBinding", ref={"name": "other"})
    (error,) = STRATEGIES["RoleBinding"].validate_update(new, old)
    assert str(error) == (
        f'roleRef: Invalid value: {{"apiGroup":"{GROUP}","kind":"ClusterRole","name":"other"}}: cannot change roleRef'
    )
    assert STRATEGIES["RoleBinding"].validate_update(changed("RoleBinding", subjects=[]), old) == []


@cases(("system:node", True), ("A b", True), ("a/b", False), ("a%b", False), ("..", False))
def test_names_are_path_segments(name: str, good: bool) -> None:
    for strategy in STRATEGIES.values():
        assert strategy.name_errors is not None
        assert (strategy.name_errors(name) == []) is good


# --- aggregation


def labelled(name: str, label: str, *rules: Obj) -> Obj:
    made = role(name, *rules)
    made["metadata"]["labels"] = {label: "true"}
    return made


def test_an_aggregating_role_gets_the_rules_of_the_matching_ones_in_order_of_name() -> None:
    pods, secrets, nodes = rule("get", "", "pods"), rule("get", "", "secrets"), rule("get", "", "nodes")
    whole = labelled("whole", "x", nodes)
    whole["aggregationRule"] = {
        "clusterRoleSelectors": [{"matchLabels": {"x": "true"}}, {"matchLabels": {"y": "true"}}]
    }
    parts = [
        labelled("c", "y", nodes),
        labelled("b", "x", secrets, pods),
        labelled("a", "x", pods),
        whole,
        role("z", pods),
    ]
    rules = aggregate(whole, parts)
    assert rules == [pods, secrets, nodes]
    assert aggregate({**whole, "rules": rules}, parts) is None
    assert aggregate(role("plain", pods), parts) is None
    assert aggregate({**whole, "rules": [pods]}, [whole]) == []


# --- the defaults

OBJECTS = bootstrap_objects()


def test_every_default_is_valid_labelled_and_unique() -> None:
    keys = set()
    for obj in OBJECTS:
        meta = obj["metadata"]
        assert errors(obj["kind"], obj) == []
        assert meta["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert meta["annotations"] == {AUTOUPDATE: "true"}
        assert obj["apiVersion"] == "rbac.authorization.k8s.io/v1"
        keys.add((obj["kind"], meta.get("namespace"), meta["name"]))
    assert len(keys) == len(OBJECTS)


def test_every_default_binding_points_to_a_default_role() -> None:
    roles = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]) for o in OBJECTS}
    for obj in OBJECTS:
        if "roleRef" in obj:
            assert (obj["roleRef"]["kind"], obj["metadata"].get("namespace", ""), obj["roleRef"]["name"]) in roles


@cases(
    "cluster-admin", "admin", "edit", "view", "system:discovery", "system:basic-user", "system:public-info-viewer",
    "system:node", "system:node-proxier", "system:kube-scheduler", "system:kube-controller-manager",
    "system:auth-delegator", "system:node-bootstrapper", "system:service-account-issuer-discovery",
    "system:monitoring", "system:controller:namespace-controller", "system:controller:generic-garbage-collector",
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    "system:certificates.k8s.io:kube-apiserver-client-approver",
)  # fmt: skip
def test_the_well_known_roles_exist(name: str) -> None:
    assert any(o["kind"] == "ClusterRole" and o["metadata"]["name"] == name and o["rules"] for o in OBJECTS)


def test_every_rule_names_sorted_verbs_and_resources_once() -> None:
    for obj in OBJECTS:
        for rule_ in obj.get("rules") or ():
            for key in ("verbs", "resources"):
                values = rule_.get(key, [])
                assert values == sorted(set(values)), obj["metadata"]["name"]
                assert all(values), obj["metadata"]["name"]


def test_view_holds_the_rules_of_its_part_one_to_one() -> None:
    view, part = default("ClusterRole", "view"), default("ClusterRole", "system:aggregate-to-view")
    assert view["rules"] == part["rules"]
    assert len(view["rules"]) == 11
    assert view["rules"][2] == {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}
    edit = default("ClusterRole", "edit")
    assert edit["rules"] == default("ClusterRole", "system:aggregate-to-edit")["rules"] + view["rules"]


def test_every_controller_of_a_cluster_has_its_role_and_binding() -> None:
    named = {
        (o["kind"], o["metadata"]["name"]) for o in OBJECTS if o["metadata"]["name"].startswith("system:controller:")
    }
    roles = {name for kind, name in named if kind == "ClusterRole"}
    assert roles == {name for kind, name in named if kind == "ClusterRoleBinding"}
    assert {f"system:controller:{name}" for name in (
        "attachdetach-controller", "expand-controller", "ephemeral-volume-controller", "route-controller",
        "service-cidrs-controller", "resource-claim-controller", "validatingadmissionpolicy-status-controller",
        "volumeattributesclass-protection-controller", "selinux-warning-controller",
    )} <= roles  # fmt: skip
    assert len(roles) == 38


ANYONE = User("system:anonymous", groups=("system:unauthenticated",))
SOMEONE = User("jane", groups=("system:authenticated",))
ADMIN = User("ann")


def on(verb: str, resource: str, group: str = "", namespace: str = "ns", name: str = "") -> AuthzAttributes:
    plural, _, sub = resource.partition("/")
    return AuthzAttributes(verb, group, "v1", plural, sub, namespace, name)


def at(url: str) -> AuthzAttributes:
    return AuthzAttributes("get", path=url, is_resource=False)


@cases(
    (ANYONE, at("/version"), True),
    (ANYONE, at("/api"), False),
    (SOMEONE, at("/apis/apps/v1"), True),
    (SOMEONE, at("/metrics"), False),
    (SOMEONE, on("create", "selfsubjectaccessreviews", "authorization.k8s.io", ""), True),
    (SOMEONE, on("create", "selfsubjectreviews", "authentication.k8s.io", ""), True),
    (SOMEONE, on("list", "pods"), False),
    (User("sa", groups=("system:serviceaccounts",)), at("/openid/v1/jwks"), True),
    (User("system:kube-scheduler"), on("create", "pods/binding"), True),
    (
        User("system:kube-controller-manager"),
        on("get", "configmaps", "", "kube-system", "extension-apiserver-authentication"),
        True,
    ),
    (User("system:serviceaccount:kube-system:token-cleaner"), on("delete", "secrets", "", "kube-system"), True),
    (User("system:serviceaccount:kube-system:token-cleaner"), on("delete", "secrets", "", "default"), False),
    (
        User("system:serviceaccount:kube-system:bootstrap-signer"),
        on("update", "configmaps", "", "kube-public", "cluster-info"),
        True,
    ),
    (ADMIN, on("create", "rolebindings", "rbac.authorization.k8s.io"), True),
    (ADMIN, on("get", "secrets"), True),
    (ADMIN, on("list", "deployments", "apps"), True),
    (ADMIN, on("list", "nodes", namespace=""), False),
    (ADMIN, on("get", "secrets", namespace="other"), False),
    (User("eve"), on("get", "secrets"), False),
    (User("eve"), on("get", "configmaps"), True),
)
def test_the_defaults_allow(user: User, request_: AuthzAttributes, allowed: bool) -> None:
    reader = FakeReader(OBJECTS)
    reader.put(binding("admins", "ClusterRole/admin", "user:ann", namespace="ns"))
    reader.put(binding("viewers", "ClusterRole/view", "user:eve", namespace="ns"))
    assert authorizer(reader).authorize(user, request_).allowed is allowed


def default(kind: str, name: str) -> Obj:
    return copy_json(next(o for o in OBJECTS if o["kind"] == kind and o["metadata"]["name"] == name))


def test_a_complete_default_needs_no_repair() -> None:
    for obj in OBJECTS:
        assert reconcile(obj, obj) is None


def test_a_role_gets_back_what_it_lost_and_keeps_what_was_added() -> None:
    wanted = default("ClusterRole", "system:basic-user")
    added = rule("get", "example.com", "widgets")
    existing = {**wanted, "rules": [added, wanted["rules"][1]]}
    assert missing_rules(existing, wanted) == [
        {"apiGroups": ["authorization.k8s.io"], "resources": [name], "verbs": ["create"]}
        for name in ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
    ]
    repaired = reconcile(existing, wanted)
    assert repaired is not None
    assert repaired["rules"][:2] == existing["rules"]
    assert missing_rules(repaired, wanted) == []
    assert len(existing["rules"]) == 2


def test_a_role_that_grants_more_by_wildcards_is_complete() -> None:
    wanted = default("ClusterRole", "system:basic-user")
    assert reconcile({**wanted, "rules": [rule("*", "*", "*")]}, wanted) is None


def test_a_binding_gets_back_its_subjects() -> None:
    wanted = default("ClusterRoleBinding", "system:public-info-viewer")
    mine = {"kind": "User", "apiGroup": GROUP, "name": "me"}
    repaired = reconcile({**wanted, "subjects": [mine]}, wanted)
    assert repaired is not None
    assert repaired["subjects"] == [mine, *wanted["subjects"]]
    assert must_recreate({**wanted, "roleRef": {**wanted["roleRef"], "name": "other"}}, wanted)
    assert not must_recreate(wanted, wanted)


def test_an_aggregating_role_gets_back_its_selector_and_its_rules_are_the_controllers() -> None:
    wanted = default("ClusterRole", "edit")
    assert reconcile({**wanted, "rules": []}, wanted) is None
    bare = {key: value for key, value in wanted.items() if key != "aggregationRule"}
    repaired = reconcile(bare, wanted)
    assert repaired is not None
    assert repaired["aggregationRule"] == wanted["aggregationRule"]


def test_lost_labels_come_back() -> None:
    wanted = default("ClusterRole", "view")
    bare = copy_json(wanted)
    bare["metadata"]["labels"] = {"mine": "x"}
    repaired = reconcile(bare, wanted)
    assert repaired is not None
    assert repaired["metadata"]["labels"] == {"mine": "x", **wanted["metadata"]["labels"]}


def test_what_is_not_to_be_updated_is_left_alone() -> None:
    wanted = default("ClusterRole", "system:basic-user")
    frozen = copy_json(wanted)
    frozen["metadata"]["annotations"] = {AUTOUPDATE: "false"}
    frozen["rules"] = []
    assert reconcile(frozen, wanted) is None
