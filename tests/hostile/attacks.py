"""What one tenant with `admin` in one namespace may send to stop, slow down or fill the control plane.

Each attack is one round of it; they are played one after the other by a test that counts, and all at once, for a
minute, by the soak.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from karmada.kube.objects.types import Obj
from tests.hostile.sending import Answer, Sender
from tests.support.workloads import one_container, workload

RED, BLUE = "red", "blue"
CONFIGMAPS = f"/api/v1/namespaces/{RED}/configmaps"
_POLICIES = f"/apis/policy.karmada.io/v1alpha1/namespaces/{RED}/propagationpolicies"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{RED}/deployments"
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_MERGE, _APPLY, _JSON_PATCH = (
    "application/merge-patch+json", "application/apply-patch+yaml", "application/json-patch+json",
)  # fmt: skip
Attack = Callable[[Sender, int], list[Answer]]
"""One round, which gets its number; returns the answers."""


def config_map(name: str, keys: int, **labels: str) -> Obj:
    data = {f"key-{number}": "value" for number in range(keys)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": data}


def prepare(admin: Sender, small: int, large: int, keys: int) -> None:
    """Two tenants; the first has many small objects, and some large ones."""
    for name in (RED, BLUE):
        admin("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        binding = {
            "metadata": {"name": "admin"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
        }
        answer = admin("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings", binding)
        assert answer.code == 201, answer.body
    red, blue = admin.as_user(RED), admin.as_user(BLUE)
    assert blue("POST", f"/api/v1/namespaces/{BLUE}/configmaps", config_map("mine", 1)).code == 201
    for number in range(small):
        assert red("POST", CONFIGMAPS, config_map(f"small-{number}", 20)).code == 201
    for number in range(large):
        assert red("POST", CONFIGMAPS, config_map(f"large-{number}", keys, big="1")).code == 201


def lists_in_every_form(red: Sender, number: int) -> list[Answer]:
    forms = (
        "application/yaml", _TABLE, "application/vnd.kubernetes.protobuf",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    )  # fmt: skip
    accept = forms[number % len(forms)]
    return [red("GET", f"{CONFIGMAPS}?includeObject=Object" if accept == _TABLE else CONFIGMAPS, accept=accept)]


def a_large_object_in_yaml(red: Sender, _number: int) -> list[Answer]:
    return [red("GET", f"{CONFIGMAPS}/large-0", accept="application/yaml")]


def long_selectors(red: Sender, number: int) -> list[Answer]:
    requirements = 8_000 if number % 4 == 0 else 64
    selector = ",".join(f"!z{one}" for one in range(requirements))
    watch = "&watch=1&resourceVersion=0&timeoutSeconds=1" if number % 2 else ""
    return [red("GET", f"{CONFIGMAPS}?labelSelector={selector}{watch}")]


def merge_keys(red: Sender, _number: int) -> list[Answer]:
    keys = ", ".join(f"k{one}: v" for one in range(5_500))
    body = f"a0: &a0 {{{keys}}}\nx: {{{', '.join(['<<: *a0'] * 70)}}}\n"
    return [red("POST", CONFIGMAPS, body.encode(), media="application/yaml")]


def small_patches_of_large_objects(red: Sender, number: int) -> list[Answer]:
    path, label = f"{CONFIGMAPS}/large-{number % 2}", {"metadata": {"labels": {"round": str(number)}}}
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"large-{number % 2}"}, "data": {"a": "b"}}
    moves = [{"op": "move", "from": "/data/key-1", "path": "/data/key-1"}] * 1_000
    return [
        red("PATCH", path, label, media=_MERGE),
        red("PATCH", f"{path}?fieldManager=red&force=true", applied, media=_APPLY),
        red("PATCH", path, moves, media=_JSON_PATCH),
    ]


def policies_of_many_selectors(red: Sender, number: int) -> list[Answer]:
    count, expressions = (2_500, 10) if number % 4 == 0 else (1_000, 5)
    selectors = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "labelSelector": {
                "matchExpressions": [{"key": f"k{one}-{at}", "operator": "Exists"} for at in range(expressions)]
            },
        }
        for one in range(count)
    ]
    return _policy(red, "selectors", selectors, {"clusterAffinity": {"clusterNames": ["none"]}})


def policies_of_many_terms(red: Sender, number: int) -> list[Answer]:
    count = 15_000 if number % 4 == 0 else 100
    terms = [{"affinityName": f"a{one}", "labelSelector": {"matchLabels": {f"k{one}": "none"}}} for one in range(count)]
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    web = workload("Deployment", "web", 1, one_container("nginx"))
    answers = [red("POST", _DEPLOYMENTS, web), *_policy(red, "terms", [selector], {"clusterAffinities": terms})]
    return [*answers, red("DELETE", f"{_DEPLOYMENTS}/web")]


def a_placement_of_a_megabyte(red: Sender, _number: int) -> list[Answer]:
    names = [f"cluster-{one}" for one in range(9_999)]
    return _policy(
        red, "placement", [{"apiVersion": "v1", "kind": "ConfigMap"}], {"clusterAffinity": {"clusterNames": names}}
    )


def _policy(red: Sender, name: str, selectors: list[Obj], placement: Obj) -> list[Answer]:
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name},
        "spec": {"resourceSelectors": selectors, "placement": placement},
    }
    return [red("POST", _POLICIES, policy), red("DELETE", f"{_POLICIES}/{name}")]


def events_in_yaml(red: Sender, number: int) -> list[Answer]:
    about = {"kind": "ConfigMap", "name": "small-0", "namespace": RED}
    event = {"metadata": {"generateName": "flood-"}, "involvedObject": about, "reason": "Flood", "message": str(number)}
    events = f"/api/v1/namespaces/{RED}/events"
    return [*(red("POST", events, event) for _ in range(10)), red("GET", events, accept="application/yaml")]


ATTACKS: Final[tuple[Attack, ...]] = (
    lists_in_every_form, a_large_object_in_yaml, long_selectors, merge_keys, small_patches_of_large_objects,
    policies_of_many_selectors, policies_of_many_terms, a_placement_of_a_megabyte, events_in_yaml,
)  # fmt: skip
UNREAD = f"{CONFIGMAPS}?watch=true&labelSelector=big%3D1"
"""A watch that begins with all large objects; many of them are opened, and never read."""
