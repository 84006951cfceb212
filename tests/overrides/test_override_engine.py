"""Which policies are applied, in which order, and that nothing is left half done."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.api.matching import cluster_matches, selectors_priority
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.types import Obj
from karmada.overrides.compiled import Policy, Target, subject_of
from karmada.overrides.engine import Overrides, selected, selects_clusters
from karmada.overrides.errors import OverrideError
from tests.support.cases import cases
from tests.support.overriding import DEPLOYMENTS, applied, cluster, config_map, cop, deployment, op, rule


def mark(text: str) -> Obj:
    """Notes the order of what is applied: in the label `by`, separated by dots."""
    return rule(annotationsOverrider=[{"operator": "add", "value": {f"by-{text}": "yes", "last": text}}])


def last(obj: Obj, *objects: Obj, to: str = "m1") -> str | None:
    return (applied(obj, *objects, to=to).manifest["metadata"].get("annotations") or {}).get("last")


def names(obj: Obj, *objects: Obj, to: str = "m1") -> list[str]:
    done = applied(obj, *objects, to=to)
    return [made.policy.name for made in (*done.cluster_policies, *done.policies)]


# --- selection -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selectors", "chosen"),
    [
        (None, True),
        ([DEPLOYMENTS], True),
        ([{**DEPLOYMENTS, "apiVersion": "apps/v1beta1"}], False),
        ([{**DEPLOYMENTS, "kind": "DaemonSet"}], False),
        ([{**DEPLOYMENTS, "name": "web"}], True),
        ([{**DEPLOYMENTS, "name": "db"}], False),
        ([{**DEPLOYMENTS, "namespace": "default"}], True),
        ([{**DEPLOYMENTS, "namespace": "other"}], False),
        ([{**DEPLOYMENTS, "namespace": "default", "name": "web"}], True),
        ([{**DEPLOYMENTS, "labelSelector": {"matchLabels": {"tier": "front"}}}], True),
        ([{**DEPLOYMENTS, "labelSelector": {"matchLabels": {"tier": "back"}}}], False),
        ([{**DEPLOYMENTS, "labelSelector": {}}], True),
        ([{**DEPLOYMENTS, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}], False),
        ([{**DEPLOYMENTS, "name": "web", "labelSelector": {"matchLabels": {"tier": "back"}}}], True),
        ([{**DEPLOYMENTS, "name": "db"}, {**DEPLOYMENTS, "name": "web"}], True),
    ],
)
@pytest.mark.parametrize("kind", [op, cop])
def test_a_policy_selects_resources(kind: Any, selectors: list[Obj] | None, chosen: bool) -> None:
    policy = kind("p", mark("p"), selectors=selectors)
    assert names(deployment(labels={"tier": "front"}), policy) == (["p"] if chosen else [])


def test_namespaced_policies_are_for_their_namespace() -> None:
    elsewhere = op("p", mark("p"), namespace="other")
    assert names(deployment(), elsewhere, cop("c", mark("c"))) == ["c"]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    assert names(namespace, op("p", mark("p")), cop("c", mark("c"))) == ["c"]


def test_a_policy_on_its_way_out_still_counts() -> None:
    leaving = op("p", mark("p"))
    leaving["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    assert names(deployment(), leaving) == ["p"]


def test_cluster_wide_policies_come_first_whatever_they_select_by() -> None:
    by_name = cop("z", mark("z"), selectors=[{**DEPLOYMENTS, "name": "web"}])
    assert names(deployment(), op("a", mark("a")), by_name) == ["z", "a"]


def test_the_most_precise_then_the_last_by_name_has_the_final_word() -> None:
    labelled = {**DEPLOYMENTS, "labelSelector": {"matchLabels": {"tier": "front"}}}
    named = {**DEPLOYMENTS, "name": "web"}
    policies = [
        op("a-named", mark("a"), selectors=[named]),
        op("c-everything", mark("c")),
        op("b-kind", mark("b"), selectors=[DEPLOYMENTS]),
        op("z-labelled", mark("z"), selectors=[labelled]),
        op("y-labelled", mark("y"), selectors=[labelled, DEPLOYMENTS]),
        op("b-both", mark("bb"), selectors=[DEPLOYMENTS, named]),
    ]
    expected = ["b-kind", "c-everything", "y-labelled", "z-labelled", "a-named", "b-both"]
    for order in (policies, policies[::-1], policies[3:] + policies[:3]):
        assert names(deployment(labels={"tier": "front"}), *order) == expected


def test_namespaced_policies_see_what_cluster_wide_ones_made() -> None:
    relabel = cop("c", rule(labelsOverrider=[{"operator": "add", "value": {"tier": "front"}}]))
    selector = [{**DEPLOYMENTS, "labelSelector": {"matchLabels": {"tier": "front"}}}]
    assert names(deployment(), relabel, op("p", mark("p"), selectors=selector)) == ["c", "p"]
    also_cluster_wide = cop("d", mark("d"), selectors=selector)
    assert names(deployment(), relabel, also_cluster_wide) == ["c"]


def test_what_is_applied_is_settled_before_the_first_rule_runs() -> None:
    unlabel = op("a", rule(labelsOverrider=[{"operator": "remove", "value": {"tier": ""}}]))
    selector = [{**DEPLOYMENTS, "labelSelector": {"matchLabels": {"tier": "front"}}}]
    policies = [unlabel, op("b", mark("b"), selectors=selector)]
    assert names(deployment(labels={"tier": "front"}), *policies) == ["a", "b"]


# --- rules and clusters ----------------------------------------------------------------------------------------------


def test_all_rules_for_a_cluster_are_applied_in_order() -> None:
    here, there = {"clusterNames": ["m1"]}, {"clusterNames": ["m2"]}
    rules = [{**mark("one"), "targetCluster": here}, {**mark("two"), "targetCluster": there}, mark("three")]
    done = applied(deployment(), op("p", *rules))
    assert done.manifest["metadata"]["annotations"] == {"by-one": "yes", "by-three": "yes", "last": "three"}
    assert [made.field for made in done.policies] == [
        "spec.overrideRules[0].overriders",
        "spec.overrideRules[2].overriders",
    ]


@cases(
    ({}, True),
    ({"clusterNames": ["m1", "m2"]}, True),
    ({"clusterNames": ["m2"]}, False),
    ({"exclude": ["m1"]}, False),
    ({"clusterNames": ["m1"], "exclude": ["m1"]}, False),
    ({"labelSelector": {"matchLabels": {"env": "prod"}}}, True),
    ({"labelSelector": {"matchLabels": {"env": "test"}}}, False),
    ({"labelSelector": {}}, True),
    ({"labelSelector": {"matchExpressions": [{"key": "env", "operator": "Like", "values": ["x"]}]}}, False),
    ({"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}}, True),
    ({"fieldSelector": {"matchExpressions": [{"key": "provider", "operator": "NotIn", "values": ["x"]}]}}, True),
    ({"fieldSelector": {"matchExpressions": [{"key": "provider", "operator": "In", "values": ["x"]}]}}, False),
    ({"fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "z"]}]}}, True),
    ({"fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}}, False),
    ({"labelSelector": {"matchLabels": {"env": "prod"}}, "clusterNames": ["m2"]}, False),
)
def test_a_rule_is_for_clusters(target: Obj, chosen: bool) -> None:
    m1 = cluster("m1", {"env": "prod"}, region="eu", zones=["a", "b"])
    assert names(deployment(), op("p", {**mark("p"), "targetCluster": target}), m1) == (["p"] if chosen else [])


def test_a_single_rule_may_stand_in_the_spec_itself() -> None:
    older = op("p", targetCluster={"clusterNames": ["m1"]}, **mark("p"))
    assert last(deployment(), older) == "p"
    assert applied(deployment(), older).policies[0].field == "spec.overriders"
    assert names(deployment(), older, cluster("m2"), to="m2") == []
    assert last(deployment(), {**older, "spec": {**older["spec"], "overrideRules": []}}) == "p"


def test_a_rule_without_overriders_counts_and_changes_nothing() -> None:
    obj = deployment()
    done = applied(obj, op("p", rule()), cop("c"))
    assert done.manifest is obj
    assert [len(done.cluster_policies), len(done.policies)] == [1, 1]


def test_without_policies_the_object_itself_comes_out() -> None:
    obj = deployment()
    assert applied(obj) == (obj, (), ())
    assert applied(obj).manifest is obj


def test_an_unknown_cluster_is_an_error() -> None:
    with pytest.raises(NotFound, match=r'clusters\.cluster\.karmada\.io "m9" not found'):
        applied(deployment(), to="m9")


# --- errors ----------------------------------------------------------------------------------------------------------

BROKEN = rule(plaintext=[{"path": "/spec/none", "operator": "remove"}])


def test_an_error_names_the_policy_the_rule_and_the_field() -> None:
    broken = rule({"clusterNames": ["m1"]}, labelsOverrider=[], **BROKEN["overriders"])
    with pytest.raises(OverrideError) as refused:
        applied(deployment(), op("p", rule({"clusterNames": ["m2"]}), broken))
    assert refused.value.message == (
        "failed to apply override policy(default/p) for cluster(m1): spec.overrideRules[1].overriders.plaintext: "
        "error in remove for path: '/spec/none': unable to remove nonexistent key: none: missing value"
    )
    image = {"component": "Tag", "operator": "add", "value": "x"}
    with pytest.raises(OverrideError) as refused:
        applied(deployment({"name": "a", "image": "A"}), cop("c", overriders={"imageOverrider": [image]}))
    assert refused.value.message == (
        "failed to apply cluster override policy(c) for cluster(m1): spec.overriders.imageOverrider[0]: "
        "failed to parse image value(A), error: repository name must be lowercase"
    )


def test_an_error_reports_what_went_well_before_it() -> None:
    policies = [cop("c", mark("c")), op("a", mark("a"), BROKEN, mark("b")), op("z", mark("z"))]
    with pytest.raises(OverrideError) as refused:
        applied(deployment(), *policies)
    assert [made.field for made in refused.value.applied] == ["spec.overrideRules[0].overriders"] * 2
    assert [made.policy.name for made in refused.value.applied] == ["c", "a"]
    assert refused.value.rule.policy.name == "a"


# --- never mutates, whatever is applied ------------------------------------------------------------------------------

_texts = st.sampled_from(["a", "b", "x:1", "r.io", "/metadata/labels", "/spec/replicas", "/spec/new", "", "/data/x"])
_images = st.fixed_dictionaries(
    {
        "component": st.sampled_from(["Registry", "Repository", "Tag"]),
        "operator": st.sampled_from(["add", "remove", "replace"]),
        "value": _texts,
    }
)
_words = st.fixed_dictionaries(
    {
        "containerName": st.sampled_from(["web", "a"]),
        "operator": st.sampled_from(["add", "remove"]),
        "value": st.lists(_texts, max_size=2),
    }
)
_marks = st.fixed_dictionaries(
    {
        "operator": st.sampled_from(["add", "remove", "replace", "addIfAbsent"]),
        "value": st.dictionaries(st.sampled_from(["a", "b"]), _texts, max_size=2),
    }
)
_patches: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "path": _texts,
        "operator": st.sampled_from(["add", "remove", "replace"]),
        "value": st.sampled_from([1, "x", {"a": {"b": []}}, [1], None]),
    }
)
_overriders = st.fixed_dictionaries(
    {},
    optional={
        "imageOverrider": st.lists(_images, max_size=2),
        "commandOverrider": st.lists(_words, max_size=2),
        "argsOverrider": st.lists(_words, max_size=2),
        "labelsOverrider": st.lists(_marks, max_size=2),
        "annotationsOverrider": st.lists(_marks, max_size=2),
        "plaintext": st.lists(_patches, max_size=3),
        "replicasOverrider": st.lists(st.fixed_dictionaries({"value": st.integers(0, 9)}), max_size=2),
    },
)


@given(st.lists(_overriders, min_size=1, max_size=3), st.booleans())
def test_neither_the_object_nor_the_policies_are_ever_changed(lists: list[Obj], labelled: bool) -> None:
    obj = deployment(**({"labels": {"a": "1"}} if labelled else {}))
    policies = [op(f"p{index}", rule(**overriders)) for index, overriders in enumerate(lists)]
    try:
        done = applied(obj, *policies)  # checks it
    except OverrideError:
        return
    again = applied(obj, *policies)
    assert again.manifest == done.manifest
    assert len(done.policies) == len(lists)


# --- compiled forms say the same as the plain ones -------------------------------------------------------------------

_label_selectors = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": {"env": "prod"}},
        {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]},
        {"matchExpressions": [{"key": "env", "operator": "Like"}]},
    ]
)
_field_selectors = st.sampled_from(
    [None, {}, {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}]
)


@given(
    st.lists(st.sampled_from(["m1", "m2"]), max_size=2),
    st.lists(st.sampled_from(["m1", "m2"]), max_size=1),
    _label_selectors,
    _field_selectors,
    st.sampled_from([{}, {"env": "prod"}, {"env": "test"}]),
    st.sampled_from(["", "eu", "us"]),
)
def test_a_compiled_target_agrees_with_the_affinity(
    only: list[str], exclude: list[str], labels: Obj | None, fields: Obj | None, has: dict[str, str], region: str
) -> None:
    affinity = {"clusterNames": only, "exclude": exclude, "labelSelector": labels, "fieldSelector": fields}
    given_cluster = cluster("m1", has, region=region)
    assert Target(affinity).matches(given_cluster) == cluster_matches(affinity, given_cluster)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"apiVersion": st.sampled_from(["apps/v1", "v1"]), "kind": st.sampled_from(["Deployment", "Pod"])},
            optional={
                "namespace": st.sampled_from(["", "default", "other"]),
                "name": st.sampled_from(["", "web", "db"]),
                "labelSelector": _label_selectors,
            },
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([{}, {"env": "prod"}]),
)
def test_compiled_selectors_agree_with_the_plain_ones_and_are_found(
    selectors: list[Obj], labels: dict[str, str]
) -> None:
    obj = deployment(labels=labels)
    policy = cop("p", rule(), selectors=selectors)
    expected = selectors_priority(selectors, obj)
    assert Policy(policy).priority(subject_of(obj)) == expected
    assert names(obj, policy) == (["p"] if expected else [])


# --- finding policies ------------------------------------------------------------------------------------------------


def test_policies_are_indexed_by_what_they_select() -> None:
    both = [{**DEPLOYMENTS, "name": "a"}, {**DEPLOYMENTS, "namespace": "x"}]
    assert set(selected(cop("c", selectors=both))) == {"|apps/v1|Deployment|a", "x|apps/v1|Deployment|"}
    assert set(selected(op("p", selectors=both))) == {"default|apps/v1|Deployment|a", "default|apps/v1|Deployment|"}
    assert set(selected(cop("c"))) == {"|||"}
    assert set(selected(op("p"))) == {"default|||"}


def test_policies_that_look_at_clusters_are_indexed() -> None:
    assert not selects_clusters(op("p", rule({"clusterNames": ["m1"]}), rule()))
    assert selects_clusters(op("p", rule(), rule({"labelSelector": {}})))
    assert selects_clusters(op("p", targetCluster={"fieldSelector": {}}))
    assert not selects_clusters(op("p"))


def test_a_policy_is_compiled_once_for_each_of_its_versions() -> None:
    overrides = Overrides.of_objects([])
    policy = op("p", mark("p"))
    compiled = overrides.namespaced.compiled(policy)
    assert overrides.namespaced.compiled(policy) is compiled
    changed = copy_json(policy)
    assert overrides.namespaced.compiled(changed) is not compiled
    assert overrides.namespaced.compiled(changed) is overrides.namespaced.compiled(changed)


def test_thousands_of_policies_for_others_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [op(f"p{n}", mark("x"), selectors=[{**DEPLOYMENTS, "name": f"w{n}"}]) for n in range(2000)]
    overrides = Overrides.of_objects(
        [*others, op("mine", mark("m"), selectors=[{**DEPLOYMENTS, "name": "web"}]), cluster()]
    )
    looked_at: list[str] = []
    compiled = overrides.namespaced.compiled

    def recorded(policy: Obj) -> Any:
        looked_at.append(policy["metadata"]["name"])
        return compiled(policy)

    monkeypatch.setattr(overrides.namespaced, "compiled", recorded)
    for _ in range(3):
        assert len(overrides.apply(deployment(), "m1").policies) == 1
    assert looked_at == ["mine"]
    assert overrides.apply(config_map(), "m1").policies == ()
    assert looked_at == ["mine"]
