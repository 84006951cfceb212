"""What is propagated at all."""

from __future__ import annotations

import pytest

from karmada.controllers.detector.kinds import SkippedApis, SkippedNamespaces
from karmada.kube.client.discovery import Mapping
from karmada.kube.objects.gvk import GVK, GVR
from tests.support.cases import cases

VERBS = ("get", "delete", "list", "watch")


def mapping(group: str, version: str, kind: str, verbs: tuple[str, ...] = VERBS) -> Mapping:
    return Mapping(GVR(group, version, kind.lower() + "s"), GVK(group, version, kind), True, verbs)


@cases(
    ("apps", "v1", "Deployment", True),
    ("", "v1", "Event", False),
    ("events.k8s.io", "v1", "Event", False),
    ("coordination.k8s.io", "v1", "Lease", False),
    ("coordination.k8s.io", "v1beta1", "Lease", True),
    ("work.karmada.io", "v1alpha1", "Work", False),
    ("policy.karmada.io", "v1alpha1", "PropagationPolicy", False),
    ("search.karmada.io", "v1alpha1", "ResourceRegistry", True),
)
def test_the_control_planes_own_kinds_are_left_out(group: str, version: str, kind: str, propagates: bool) -> None:
    assert SkippedApis().propagates(mapping(group, version, kind)) is propagates


def test_what_cannot_be_watched_is_left_out() -> None:
    assert not SkippedApis().propagates(mapping("apps", "v1", "Deployment", ("list", "delete")))


@cases(
    ("apps", [("apps", "v1", "Deployment")], [("batch", "v1", "Job")]),
    ("batch/v1", [("batch", "v1", "Job")], [("batch", "v1beta1", "Job")]),
    ("v1/Pod,Secret", [("", "v1", "Pod"), ("", "v1", "Secret")], [("", "v1", "ConfigMap"), ("", "v1", "secret")]),
    ("apps/v1/Deployment", [("apps", "v1", "Deployment")], [("apps", "v1", "StatefulSet")]),
    ("apps;batch/v1/Job", [("apps", "v1", "DaemonSet"), ("batch", "v1", "Job")], [("batch", "v1", "CronJob")]),
    ("", [("work.karmada.io", "v1alpha1", "Work")], [("apps", "v1", "Deployment")]),
)
def test_a_flag_leaves_out_more(
    text: str, skipped: list[tuple[str, str, str]], kept: list[tuple[str, str, str]]
) -> None:
    apis = SkippedApis.parse(text)
    assert [apis.propagates(mapping(*each)) for each in skipped] == [False] * len(skipped)
    assert [apis.propagates(mapping(*each)) for each in kept] == [True] * len(kept)


def test_a_flag_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^parse --skipped-propagating-apis invalid parameter: a/b/c/d$"):
        SkippedApis.parse("apps;a/b/c/d")


@cases(
    ("", False),
    ("default", False),
    ("kube-system", True),
    ("my-kube-system", False),
    ("karmada-system", True),
    ("karmada-cluster", True),
    ("karmada-es-member1", True),
    ("test-7", True),
    ("test-77", False),
)
def test_namespaces_are_left_out_by_whole_name(namespace: str, skipped: bool) -> None:
    namespaces = SkippedNamespaces(["kube-.*", r"test-\d"])
    assert namespaces.skips(GVK("apps", "v1", "Deployment"), namespace, "a") is skipped


def test_the_api_servers_own_config_map_is_always_left_out() -> None:
    namespaces = SkippedNamespaces([])
    assert namespaces.skips(GVK("", "v1", "ConfigMap"), "kube-system", "extension-apiserver-authentication")
    assert not namespaces.skips(GVK("", "v1", "ConfigMap"), "kube-system", "other")
