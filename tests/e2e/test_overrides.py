"""Override policies, looked at where they count: in the member clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import DEPLOYMENTS, EVENTS, NAMESPACES
from karmada.kube.objects.types import Obj
from tests.e2e.propagating import (
    BINDINGS,
    CONFIG_MAPS,
    WORKS,
    Propagation,
    config_map,
    deployment,
    image,
    in_clusters,
    override,
    policy,
    replicas,
    rule,
    selector,
)
from tests.support.eventually import eventually_blocking

pytestmark = pytest.mark.e2e

DATA = Path(__file__).parent / "data"
BOTH = ["member1", "member2"]
CONFIGS = {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.fixture
def fleet(three_members: Propagation) -> Propagation:
    return three_members


def put(value: str, key: str = "colour") -> dict[str, Any]:
    """Overriders that write into the data of a ConfigMap."""
    return {"plaintext": [{"path": f"/data/{key}", "operator": "add", "value": value}]}


def tags(value: str) -> dict[str, Any]:
    return {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": value}]}


# examples that people know


def test_a_registry_is_put_in_front_of_images(fleet: Propagation) -> None:
    template = deployment("myapp", 1, image="myapp:1.0.0")
    sent = policy("myapp", [selector(template)], BOTH)
    registry = {"component": "Registry", "operator": "add", "value": "test-repo"}
    changes = override("example", [selector(template)], rule(imageOverrider=[registry]))
    fleet.apply(changes, sent, template)
    for found in fleet.until_everywhere(DEPLOYMENTS, "myapp", bool, *BOTH):
        assert image(found) == "test-repo/myapp:1.0.0"
    here = fleet.here.get(DEPLOYMENTS, "myapp")
    assert here is not None
    assert image(here) == "myapp:1.0.0"
    fleet.delete(changes, sent, template)


@pytest.fixture
def nginx(fleet: Propagation) -> Iterator[Obj]:
    """In member1 and member2, with both policies of the file; member1 is a production cluster."""
    template = deployment("nginx", 2, image="docker.io/nginx:1.19")
    template["spec"]["template"]["spec"]["containers"][0]["name"] = "nginx"
    fleet.ours("label", "cluster", "member1", "environment=production")
    fleet.apply(template, policy("nginx", [selector(template)], BOTH))
    fleet.until_bound("Deployment", "nginx", *BOTH)
    output = fleet.kubectl("apply", "-f", str(DATA / "nginx-overrides.yaml")).lines
    assert output == [
        "overridepolicy.policy.karmada.io/nginx-override created",
        "overridepolicy.policy.karmada.io/nginx-jsonpatch created",
    ]
    yield template
    fleet.ours("label", "cluster", "member1", "member2", "environment-")
    fleet.ours("delete", "-f", str(DATA / "nginx-overrides.yaml"))
    fleet.delete(template, policy("nginx", []))
    for name in BOTH:
        fleet.members[name].until_gone(DEPLOYMENTS, "nginx")


def test_a_deployment_is_another_in_every_cluster(fleet: Propagation, nginx: Obj) -> None:
    first = fleet.members["member1"].until(
        DEPLOYMENTS, "nginx", lambda found: image(found).startswith("registry-1") and "affinity" in pod_of(found)
    )
    (container,) = pod_of(first)["containers"]
    assert container["image"] == "registry-1.example.com/nginx:v1.0.0-cluster1"
    assert container["args"] == ["--config=/etc/nginx/cluster1.conf"]
    assert container["resources"] == {
        "limits": {"cpu": "2", "memory": "2Gi"},
        "requests": {"cpu": "500m", "memory": "512Mi"},
    }
    assert container["env"] == [
        {"name": "ENVIRONMENT", "value": "production"},
        {"name": "LOG_LEVEL", "value": "warn"},
    ]
    (preferred,) = pod_of(first)["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["weight"] == 100
    assert preferred["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert replicas(first) == 3
    second = fleet.members["member2"].until(DEPLOYMENTS, "nginx", lambda found: image(found).startswith("registry-2"))
    (container,) = pod_of(second)["containers"]
    assert container["image"] == "registry-2.example.com/nginx:1.19"
    assert not {"args", "env"} & container.keys()
    assert meta.labels(second)["cluster"] == "member2"
    assert meta.annotations(second)["monitoring.example.com/enabled"] == "true"
    assert replicas(second) == replicas(nginx)
    noted = meta.annotations(fleet.until_work("member1", "Deployment", "nginx"))["policy.karmada.io/applied-overrides"]
    assert [each["policyName"] for each in json.loads(noted)] == ["nginx-jsonpatch", "nginx-override"]
    for name, count in (("member1", 3), ("member2", 2)):
        member = fleet.sims.kubectl(name)
        eventually_blocking(
            lambda member=member, count=count: (
                len(member("get", "pods", "-l", "app=nginx", "-o", "name").lines) == count
            )
        )


def test_a_cluster_that_gets_a_label_gets_what_the_label_brings(fleet: Propagation, nginx: Obj) -> None:
    def environment(found: Obj) -> object:
        return pod_of(found)["containers"][0].get("env")

    fleet.members["member1"].until(DEPLOYMENTS, "nginx", environment)
    works = {name: fleet.until_work(name, "Deployment", "nginx") for name in BOTH}
    fleet.ours("label", "cluster", "member2", "environment=production")
    fleet.members["member2"].until(DEPLOYMENTS, "nginx", environment)
    assert meta.generation(fleet.until_work("member1", "Deployment", "nginx")) == meta.generation(works["member1"])
    fleet.ours("label", "cluster", "member2", "environment=test", "--overwrite")
    back = fleet.members["member2"].until(DEPLOYMENTS, "nginx", lambda found: not environment(found))
    assert "affinity" not in pod_of(back)
    assert image(back) == "registry-2.example.com/nginx:1.19"


def pod_of(obj: Obj) -> Obj:
    found: Obj = obj["spec"]["template"]["spec"]
    return found


# only what is concerned


def test_a_changed_policy_touches_only_what_comes_out_differently(fleet: Propagation) -> None:
    """Three ConfigMaps in two clusters: of six Works, one is written again."""
    templates = [config_map(f"settings-{letter}", {"part": letter}, a="1") for letter in "abc"]
    fleet.apply(*templates, policy("settings", [CONFIGS], BOTH))

    def changes(first: str, second: str, part: str = "a") -> Obj:
        selected = {**CONFIGS, "labelSelector": {"matchLabels": {"part": part}}}
        rules = [rule(in_clusters("member1"), **put(first)), rule(in_clusters("member2"), **put(second))]
        return override("colours", [selected], *rules)

    def versions() -> dict[tuple[str, str], int]:
        found = [work for work in fleet.here.list(WORKS) if meta.name(work).startswith("settings-")]
        return {meta.key(work): meta.generation(work) for work in found}

    def rendered() -> dict[tuple[str, str], int]:
        """How often an event of overriding was emitted, by template and cluster."""
        found: dict[tuple[str, str], int] = {}
        for event in fleet.here.list(EVENTS, "default"):
            if event["reason"] == "ApplyOverridePolicySucceed" and "colours" in event["message"]:
                key = (event["involvedObject"]["name"], event["message"].split("for cluster(")[1].split(")")[0])
                found[key] = found.get(key, 0) + (event.get("count") or 1)
        return found

    def changed(before: dict[tuple[str, str], int]) -> set[str]:
        now = versions()
        assert now.keys() == before.keys()
        return {
            f"{name.rsplit('-', 1)[0]} in {space}"
            for (space, name) in now
            if now[(space, name)] != before[(space, name)]
        }

    for letter in "abc":
        fleet.until_bound("ConfigMap", f"settings-{letter}", *BOTH)
    start = versions()
    fleet.apply(changes("red", "blue"))
    fleet.members["member1"].until(CONFIG_MAPS, "settings-a", lambda found: found["data"].get("colour") == "red")
    fleet.members["member2"].until(CONFIG_MAPS, "settings-a", lambda found: found["data"].get("colour") == "blue")
    assert changed(start) == {"settings-a in karmada-es-member1", "settings-a in karmada-es-member2"}
    middle = versions()
    fleet.apply(changes("green", "blue"))
    fleet.members["member1"].until(CONFIG_MAPS, "settings-a", lambda found: found["data"].get("colour") == "green")
    assert changed(middle) == {"settings-a in karmada-es-member1"}
    eventually_blocking(rendered)  # events are written behind what they report
    assert {name for name, _ in rendered()} == {"settings-a"}
    middle = versions()
    fleet.apply(changes("green", "blue", part="b"))
    fleet.members["member1"].until(CONFIG_MAPS, "settings-a", lambda found: "colour" not in found["data"])
    fleet.members["member2"].until(CONFIG_MAPS, "settings-b", lambda found: found["data"].get("colour") == "blue")
    eventually_blocking(lambda: len(changed(middle)) == 4)
    assert not any("settings-c" in each for each in changed(middle))
    middle = versions()
    fleet.delete(changes("green", "blue", part="b"))
    fleet.until_everywhere(CONFIG_MAPS, "settings-b", lambda found: "colour" not in found["data"], *BOTH)
    assert changed(middle) == {"settings-b in karmada-es-member1", "settings-b in karmada-es-member2"}
    fleet.delete(*templates, policy("settings", []))
    for name in BOTH:
        for letter in "abc":
            fleet.members[name].until_gone(CONFIG_MAPS, f"settings-{letter}")


def test_namespaces_are_overridden_by_cluster_and_follow_its_labels(fleet: Propagation) -> None:
    labels = {"labelsOverrider": [{"operator": "add", "value": {"zone": "dark"}}]}
    target = {"labelSelector": {"matchLabels": {"light": "off"}}}
    changes = override("dark", [{"apiVersion": "v1", "kind": "Namespace", "name": "lit"}], rule(target, **labels))
    fleet.apply({**changes, "kind": "ClusterOverridePolicy"})
    fleet.ours("create", "namespace", "lit")
    for member in fleet.members.values():
        assert "zone" not in meta.labels(member.until(NAMESPACES, "lit", namespace=""))
    fleet.ours("label", "cluster", "member3", "light=off")
    member = fleet.members["member3"]
    member.until(NAMESPACES, "lit", lambda found: meta.labels(found).get("zone") == "dark", namespace="")
    fleet.ours("label", "cluster", "member3", "light-")
    member.until(NAMESPACES, "lit", lambda found: "zone" not in meta.labels(found), namespace="")
    fleet.ours("delete", "namespace/lit", "clusteroverridepolicy/dark")


# when it cannot be done


def test_a_rule_that_cannot_be_applied_stops_its_cluster_and_no_other(fleet: Propagation) -> None:
    template = config_map("odd", a="1")
    sent = policy("odd", [selector(template)], BOTH)
    fleet.apply(template, sent)
    fleet.until_bound("ConfigMap", "odd", *BOTH)
    wrong = {"plaintext": [{"path": "/data/missing", "operator": "replace", "value": "x"}]}
    fleet.apply(override("odd", [selector(template)], rule(in_clusters("member1"), **wrong)))
    message = "Apply override policy(default/odd) for cluster(member1) failed."
    fleet.until_emitted("odd", ("Warning", "ApplyOverridePolicyFailed", "override-manager", message))
    fleet.apply(config_map("odd", a="2"))
    fleet.members["member2"].until(CONFIG_MAPS, "odd", lambda found: found["data"] == {"a": "2"})
    found = fleet.members["member1"].get(CONFIG_MAPS, "odd")
    assert found is not None
    assert found["data"] == {"a": "1"}
    eventually_blocking(lambda: any(output[1] == "SyncWorkFailed" for output in fleet.events("odd-configmap")))
    fleet.apply(override("odd", [selector(template)], rule(in_clusters("member1"), **put("red"))))
    fleet.members["member1"].until(CONFIG_MAPS, "odd", lambda found: found["data"] == {"a": "2", "colour": "red"})
    fleet.delete(template, sent, override("odd", []))
    fleet.members["member1"].until_gone(CONFIG_MAPS, "odd")


def test_nothing_is_sent_before_the_overrides_it_depends_on_are_there(fleet: Propagation) -> None:
    template = deployment("careful", 0)
    sent = policy("careful", [selector(template)], ["member1"], dependentOverrides=["careful"])
    fleet.apply(template, sent)
    later = config_map("later", a="1")
    fleet.apply(later, policy("later", [selector(later)], ["member1"]))
    fleet.until_bound("ConfigMap", "later", "member1")
    assert fleet.here.get(BINDINGS, "careful-deployment") is None
    fleet.apply(override("careful", [selector(template)], rule(**tags("careful"))))
    found = fleet.members["member1"].until(DEPLOYMENTS, "careful")
    assert image(found) == "nginx:careful"
    assert meta.generation(found) == 1
    fleet.delete(template, sent, override("careful", []), later, policy("later", []))


def test_cluster_wide_policies_come_first_and_the_more_precise_one_last(fleet: Propagation) -> None:
    template = config_map("layers", {"kind": "layers"}, a="1")
    by_label = {**CONFIGS, "labelSelector": {"matchLabels": {"kind": "layers"}}}
    everywhere = {
        **override("layers", [by_label], rule(**put("cluster"), labelsOverrider=[])),
        "kind": "ClusterOverridePolicy",
    }
    general = override("z-general", [by_label], rule(**put("general")))
    precise = override("a-precise", [selector(template)], rule(**put("precise")))
    sent = policy("layers", [selector(template)], ["member1"])
    fleet.apply(everywhere, general, precise, template, sent)
    member = fleet.members["member1"]

    def colour(wanted: str) -> None:
        member.until(CONFIG_MAPS, "layers", lambda found: found["data"].get("colour") == wanted)

    colour("precise")
    fleet.delete(precise)
    colour("general")
    fleet.delete(general)
    colour("cluster")
    fleet.delete(everywhere)
    member.until(CONFIG_MAPS, "layers", lambda found: found["data"] == {"a": "1"})
    fleet.delete(template, sent)
    member.until_gone(CONFIG_MAPS, "layers")
