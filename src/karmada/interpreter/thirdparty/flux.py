"""Flux (*.toolkit.fluxcd.io): releases, kustomizations, and the sources they are made from.

All of them report a Ready condition and the generation they have observed, and can be suspended in a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from karmada.interpreter.native.fields import section
from karmada.interpreter.operations import Report
from karmada.interpreter.thirdparty.aggregating import (
    last,
    last_text,
    merged_conditions,
    observed_generation,
    sums,
    updated,
)
from karmada.interpreter.thirdparty.common import (
    fields_of_status,
    named_secrets,
    ready_because,
    references,
    retain_suspend,
)
from karmada.interpreter.thirdparty.kind import Aggregate, Kind
from karmada.interpreter.thirdparty.values import Number, amount, objects_at
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj

_SOURCE = "source.toolkit.fluxcd.io"
_RELEASE_TEXTS = ("lastAttemptedRevision", "lastAppliedRevision", "lastAttemptedValuesChecksum", "helmChart")
_RELEASE_FAILURES = ("failures", "upgradeFailures", "installFailures")
_REVISIONS = ("lastAppliedRevision", "lastAttemptedRevision")
_SECRET = ("spec", "secretRef", "name")
_VERIFIED_BY = ("spec", "verify", "secretRef", "name")
_KUBECONFIG = ("spec", "kubeConfig", "secretRef", "name")


def _common(obj: Obj, reports: Sequence[Report]) -> Obj:
    """Return what all of them aggregate."""
    return {"observedGeneration": observed_generation(obj, reports), "conditions": merged_conditions(reports)}


def _texts(obj: Obj, reports: Sequence[Report], fields: Sequence[str]) -> Obj:
    """Return the last text of a cluster, or else what the template has; nothing when there are no clusters."""
    if not reports:
        return dict.fromkeys(fields, "")
    status = section(obj, "status")
    return {field: last_text(reports, field, status.get(field)) for field in fields}


def _release_status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    status = section(obj, "status")
    revision = last(reports, "lastReleaseRevision", status.get("lastReleaseRevision")) if reports else ""
    return updated(
        obj,
        **_common(obj, reports),
        **_texts(obj, reports, _RELEASE_TEXTS),
        **{field: _failures(status, reports, field) for field in _RELEASE_FAILURES},
        lastReleaseRevision=revision,
    )


def _failures(status: Obj, reports: Sequence[Report], field: str) -> Number | None:
    """Add to what the template counts, if it counts them: every aggregation makes it more."""
    if not reports:
        return 0
    if status.get(field) is None:
        return None
    return amount(status, field) + sums(reports, (field,))[field]


def _release_dependencies(obj: Obj) -> list[Obj]:
    secrets = named_secrets(("spec", "chart", "spec", "verify", "secretRef", "name"), _KUBECONFIG, service_account=True)
    found = secrets(obj)
    for source in objects_at(obj, "spec", "valuesFrom"):
        if source.get("kind") in ("Secret", "ConfigMap"):
            found += references(obj, source["kind"], [source.get("name")])
    return found


def _kustomization_status(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
    return updated(obj, **_common(obj, reports), **_texts(obj, reports, _REVISIONS))


def _source_status(*texts: str) -> Aggregate:
    """Return the last artifact, and these texts."""

    def aggregate(obj: Obj, reports: Sequence[Report], _: str) -> Obj:
        found = {field: last_text(reports, field) for field in texts}
        return updated(obj, **_common(obj, reports), **found, artifact=last(reports, "artifact"))

    return aggregate


KINDS = (
    Kind(
        gvk=GVK("helm.toolkit.fluxcd.io", "v2beta1", "HelmRelease"),
        retain=retain_suspend,
        reflect=fields_of_status(
            "conditions",
            "observedGeneration",
            *_RELEASE_TEXTS,
            "lastReleaseRevision",
            *_RELEASE_FAILURES,
            generations=True,
        ),
        aggregate=_release_status,
        healthy=ready_because("ReconciliationSucceeded"),
        dependencies=_release_dependencies,
    ),
    Kind(
        gvk=GVK("kustomize.toolkit.fluxcd.io", "v1", "Kustomization"),
        retain=retain_suspend,
        reflect=fields_of_status("conditions", *_REVISIONS, "observedGeneration", generations=True),
        aggregate=_kustomization_status,
        healthy=ready_because("ReconciliationSucceeded"),
        dependencies=named_secrets(("spec", "decryption", "secretRef", "name"), _KUBECONFIG, service_account=True),
    ),
    Kind(
        gvk=GVK(_SOURCE, "v1", "GitRepository"),
        retain=retain_suspend,
        reflect=fields_of_status(
            "conditions",
            "artifact",
            "observedGeneration",
            "observedIgnore",
            "observedRecurseSubmodules",
            generations=True,
        ),
        aggregate=_source_status(),
        healthy=ready_because("Succeeded"),
        dependencies=named_secrets(_SECRET, _VERIFIED_BY),
    ),
    Kind(
        gvk=GVK(_SOURCE, "v1beta2", "Bucket"),
        retain=retain_suspend,
        reflect=fields_of_status(
            "conditions", "artifact", "observedIgnore", "observedGeneration", "url", generations=True
        ),
        aggregate=_source_status("url"),
        healthy=ready_because("Succeeded"),
        dependencies=named_secrets(_SECRET),
    ),
    Kind(
        gvk=GVK(_SOURCE, "v1beta2", "HelmRepository"),
        retain=retain_suspend,
        reflect=fields_of_status("artifact", "conditions", "observedGeneration", "url", generations=True),
        aggregate=_source_status("url"),
        healthy=ready_because("Succeeded"),
        dependencies=named_secrets(_SECRET),
    ),
    Kind(
        gvk=GVK(_SOURCE, "v1beta2", "HelmChart"),
        retain=retain_suspend,
        # without observedGeneration, as in Karmada: its template is hardly ever observed as a whole
        reflect=fields_of_status(
            "artifact", "conditions", "observedChartName", "observedSourceArtifactRevision", "url", generations=True
        ),
        aggregate=_source_status("observedChartName", "observedSourceArtifactRevision", "url"),
        healthy=ready_because("Succeeded", "ChartPullSucceeded"),
        dependencies=named_secrets(_VERIFIED_BY),
    ),
    Kind(
        gvk=GVK(_SOURCE, "v1beta2", "OCIRepository"),
        retain=retain_suspend,
        reflect=fields_of_status(
            "artifact",
            "conditions",
            "url",
            "observedGeneration",
            "observedIgnore",
            "observedLayerSelector",
            generations=True,
        ),
        aggregate=_source_status("url"),
        healthy=ready_because("Succeeded"),
        dependencies=named_secrets(_SECRET, _VERIFIED_BY, ("spec", "certSecretRef", "name"), service_account=True),
    ),
)
