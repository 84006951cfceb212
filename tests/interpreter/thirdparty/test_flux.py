"""Kinds of Flux."""

from __future__ import annotations

import pytest

from karmada.interpreter.operations import InterpreterError
from tests.interpreter.thirdparty.cases import Case, Maker, check, items, result

RELEASE = Maker("helm.toolkit.fluxcd.io/v2beta1", "HelmRelease")
KUSTOMIZATION = Maker("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
GIT = Maker("source.toolkit.fluxcd.io/v1", "GitRepository")
BUCKET = Maker("source.toolkit.fluxcd.io/v1beta2", "Bucket")
HELM_REPOSITORY = Maker("source.toolkit.fluxcd.io/v1beta2", "HelmRepository")
CHART = Maker("source.toolkit.fluxcd.io/v1beta2", "HelmChart")
OCI = Maker("source.toolkit.fluxcd.io/v1beta2", "OCIRepository")
SOURCES = (GIT, BUCKET, HELM_REPOSITORY, CHART, OCI)
ALL = (RELEASE, KUSTOMIZATION, *SOURCES)

CASES: list[Case] = [
    *(maker.retained("stays suspended where it is", "{spec: {suspend: false, url: u}}", "{spec: {suspend: true}}",
                     "{spec: {suspend: true, url: u}}") for maker in ALL),
    *(maker.retained("is as desired where suspension is not set", "{spec: {suspend: true}}", "{spec: {}}",
                     "{spec: {suspend: true}}") for maker in ALL),
    *(maker.healthy("is unhealthy without a status", "{}", False) for maker in ALL),
    *(maker.healthy("is unhealthy when ready for another reason",
                    "{status: {conditions: [{type: Ready, status: 'True', reason: Other}]}}", False) for maker in ALL),
    *(maker.healthy("is healthy when its source is fetched",
                    "{status: {conditions: [{type: Ready, status: 'True', reason: Succeeded}]}}", True)
      for maker in SOURCES),
    *(maker.healthy("is healthy when reconciled",
                    "{status: {conditions: [{type: Ready, status: 'True', reason: ReconciliationSucceeded}]}}", True)
      for maker in (RELEASE, KUSTOMIZATION)),
    CHART.healthy("is healthy when pulled",
                  "{status: {conditions: [{type: A}, {type: Ready, status: 'True', reason: ChartPullSucceeded}]}}",
                  True),
    RELEASE.reflected(
        "reports revisions and failures", "{generation: 2, annotations: {resourcetemplate.karmada.io/generation: '4'},"
        " status: {observedGeneration: 2, helmChart: c, failures: 0, lastReleaseRevision: 3, storageNamespace: s}}",
        "{observedGeneration: 2, helmChart: c, failures: 0, lastReleaseRevision: 3, generation: 2,"
        " resourceTemplateGeneration: 4}"),
    RELEASE.aggregated(
        "without clusters starts anew", "{generation: 3, status: {failures: 4, conditions: [{type: A}], more: 1}}",
        "{}",
        "{generation: 3, status: {observedGeneration: 3, lastAttemptedRevision: '', lastAppliedRevision: '',"
        " lastAttemptedValuesChecksum: '', helmChart: '', lastReleaseRevision: '', failures: 0, upgradeFailures: 0,"
        " installFailures: 0, more: 1}}"),
    RELEASE.aggregated(
        "adds failures to those it has, and keeps texts that clusters do not have",
        "{generation: 3, status: {failures: 1, helmChart: old, lastAppliedRevision: old}}",
        "{m1: {failures: 2, upgradeFailures: 5, helmChart: new, lastReleaseRevision: 7, resourceTemplateGeneration: 3},"
        " m2: {failures: 3, helmChart: '', lastAppliedRevision: '', resourceTemplateGeneration: 3}}",
        "{generation: 3, status: {observedGeneration: 3, failures: 6, helmChart: new, lastAppliedRevision: old,"
        " lastReleaseRevision: 7}}"),
    RELEASE.depends(
        "refers to values, keys and its account",
        "{spec: {valuesFrom: [{kind: Secret, name: a}, {kind: ConfigMap, name: b}, {kind: Other, name: c}],"
        " chart: {spec:"
        " {verify: {secretRef: {name: d}}}}, kubeConfig: {secretRef: {name: e}}, serviceAccountName: f}}",
        "ConfigMap/b", "Secret/a", "Secret/d", "Secret/e", "ServiceAccount/f"),
    KUSTOMIZATION.reflected("reports revisions", "{generation: 2, status: {lastAppliedRevision: r, inventory: {}}}",
                            "{lastAppliedRevision: r, generation: 2}"),
    KUSTOMIZATION.aggregated(
        "merges conditions and keeps its generation while a cluster is behind",
        "{generation: 2, status: {observedGeneration: 1, lastAttemptedRevision: old}}",
        "{c1: {resourceTemplateGeneration: 2, lastAppliedRevision: r1, conditions: [{type: Ready, status: 'True',"
        " reason: Succeeded, message: ok, lastTransitionTime: t1}]}, c2: {resourceTemplateGeneration: 1, conditions:"
        " [{type: Ready, status: 'True', reason: Succeeded, message: fine, lastTransitionTime: t2}]}, c3: {conditions:"
        " [{type: Ready, status: 'False', reason: Failed, message: x}]}}",
        "{generation: 2, status: {observedGeneration: 1, lastAttemptedRevision: old, lastAppliedRevision: r1,"
        " conditions:"
        " [{type: Ready, status: 'True', reason: Succeeded, message: 'c1=ok, c2=fine', lastTransitionTime: t1},"
        " {type: Ready, status: 'False', reason: Failed, message: c3=x}]}}"),
    KUSTOMIZATION.depends(
        "refers to keys and its account",
        "{spec: {decryption: {secretRef: {name: a}}, kubeConfig: {secretRef: {name: b}}, serviceAccountName: c}}",
        "Secret/a", "Secret/b", "ServiceAccount/c"),
    GIT.reflected("reports what it fetched",
                  "{status: {artifact: {path: p}, observedRecurseSubmodules: true, observedInclude: [1]}}",
                  "{artifact: {path: p}, observedRecurseSubmodules: true}"),
    GIT.aggregated("has the last artifact", "{generation: 1}",
                   "{m1: {artifact: {path: a}, resourceTemplateGeneration: 1}, m2: {resourceTemplateGeneration: 1}}",
                   "{generation: 1, status: {observedGeneration: 1, artifact: {path: a}}}"),
    GIT.aggregated("without clusters has no artifact", "{generation: 1, status: {artifact: {path: a}}}", "{}",
                   "{generation: 1, status: {observedGeneration: 1}}"),
    GIT.depends("refers to its keys", "{spec: {secretRef: {name: a}, verify: {secretRef: {name: b}}}}",
                "Secret/a", "Secret/b"),
    BUCKET.reflected(
        "reports its url", "{status: {url: u, observedIgnore: i, more: 1}}", "{url: u, observedIgnore: i}",
    ),
    BUCKET.aggregated("has the last url", "{}", "{m1: {url: a}, m2: {url: ''}}",
                      "{status: {observedGeneration: 0, url: a}}"),
    BUCKET.depends("refers to its key", "{spec: {secretRef: {name: a}}}", "Secret/a"),
    HELM_REPOSITORY.reflected("reports its url", "{status: {url: u, observedIgnore: i}}", "{url: u}"),
    HELM_REPOSITORY.aggregated("without a url has an empty one", "{}", "{m1: {}}",
                               "{status: {observedGeneration: 0, url: ''}}"),
    HELM_REPOSITORY.depends("without a key refers to nothing", "{spec: {}}"),
    CHART.reflected("does not report its generation as observed",
                    "{generation: 2, status: {observedGeneration: 2, observedChartName: n}}",
                    "{observedChartName: n, generation: 2}"),
    CHART.aggregated(
        "has the last chart", "{generation: 1}", "{m1: {observedChartName: n, observedSourceArtifactRevision: r}}",
        "{generation: 1, status: {observedGeneration: 0, observedChartName: n, observedSourceArtifactRevision: r,"
        " url: ''}}"),
    CHART.depends("refers to its key", "{spec: {secretRef: {name: x}, verify: {secretRef: {name: a}}}}", "Secret/a"),
    OCI.reflected("reports the layer", "{status: {url: u, observedLayerSelector: {mediaType: m}}}",
                  "{url: u, observedLayerSelector: {mediaType: m}}"),
    OCI.aggregated("has the last url", "{}", "{m1: {url: a}, m2: {url: b}}",
                   "{status: {observedGeneration: 0, url: b}}"),
    OCI.depends(
        "refers to keys, certificates and its account",
        "{spec: {secretRef: {name: a}, verify: {secretRef: {name: b}}, certSecretRef: {name: c},"
        " serviceAccountName: d}}",
        "Secret/a", "Secret/b", "Secret/c", "ServiceAccount/d"),
    OCI.depends("without an account refers to none", "{spec: {secretRef: {name: a}}}", "Secret/a"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kinds_of_flux(case: Case) -> None:
    check(case)


def test_a_condition_without_a_message_cannot_be_merged() -> None:
    reports = items("{m1: {conditions: [{type: Ready, status: 'True'}]}}")
    with pytest.raises(InterpreterError, match="status of cluster m1: conditions: Ready: no message"):
        result("aggregate_status", GIT.make(), reports)


def test_failures_of_a_release_grow_with_every_aggregation() -> None:
    reports, release = items("{m1: {failures: 2}}"), RELEASE.make("{status: {failures: 1}}")
    once = result("aggregate_status", release, reports)
    twice = result("aggregate_status", once, reports)
    assert [made["status"]["failures"] for made in (once, twice)] == [3, 5]
