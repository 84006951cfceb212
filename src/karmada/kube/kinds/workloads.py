"""The kinds of apps/v1, and the older ReplicationController and PodTemplate.

All of them wrap a pod template, so defaults and rules are those of podspec.py plus a few of their own.
What cannot change once created is a selector (it would orphan the pods) and, for a StatefulSet, nearly everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.kinds.claims import claim_spec, default_claim_spec
from karmada.kube.kinds.filling import fill, fill_text, part, set_zero
from karmada.kube.kinds.pod_warnings import claim_warnings, for_template
from karmada.kube.kinds.podspec import default_template, validate_template
from karmada.kube.kinds.resource import Strategy
from karmada.kube.kinds.scale import WorkloadScale
from karmada.kube.kinds.workload_status import (
    DAEMONSET_STATUS,
    DEPLOYMENT_STATUS,
    REPLICASET_STATUS,
    STATEFULSET_STATUS,
)
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, forbidden_field, invalid, not_supported, required
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_NO_MATCH = "`selector` does not match template `labels`"
_EMPTY_SELECTOR = "empty selector is invalid for "
_STATEFULSET_FIELDS = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
STATEFULSET_FORBIDDEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


# --- defaults


def _default_strategy(strategy: Obj, **rolling: Any) -> None:
    """Fill in an update strategy: RollingUpdate unless it says otherwise."""
    fill_text(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(part(strategy, "rollingUpdate"), **rolling)


def default_deployment(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, replicas=1, strategy={}, revisionHistoryLimit=10, progressDeadlineSeconds=600, template={})
    _default_strategy(spec["strategy"], maxUnavailable="25%", maxSurge="25%")
    default_template(spec["template"])


def default_replicaset(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, replicas=1, template={})
    default_template(spec["template"])


def default_statefulset(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, replicas=1)
    fill_text(spec, podManagementPolicy="OrderedReady")
    fill(spec, updateStrategy={}, revisionHistoryLimit=10, persistentVolumeClaimRetentionPolicy={}, template={})
    _default_strategy(spec["updateStrategy"], partition=0)
    fill_text(spec["persistentVolumeClaimRetentionPolicy"], whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        default_claim_spec(part(claim, "spec"))
        fill(part(claim, "status"), phase="Pending")
    default_template(spec["template"])


def default_daemonset(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, updateStrategy={}, revisionHistoryLimit=10, template={})
    _default_strategy(spec["updateStrategy"], maxUnavailable=1, maxSurge=0)
    default_template(spec["template"])


def default_replication_controller(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, replicas=1)
    template = spec.get("template")
    if template is not None:
        labels = (template.get("metadata") or {}).get("labels")
        if labels:
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            meta = part(obj, "metadata")
            if not meta.get("labels"):
                meta["labels"] = dict(labels)
        default_template(template)


def default_pod_template(obj: Obj) -> None:
    default_template(part(obj, "template"))


# --- rules


def selector_and_template(errors: list[FieldError], spec: Obj, kind: str) -> bool:
    """Return a selector that is not empty, and a template whose labels it selects; whether the template was checked."""
    selector = spec.get("selector")
    template = spec.get("template") or {}
    before = len(errors)
    if selector is None:
        errors.append(required("spec.selector"))
    else:
        checks.label_selector(errors, "spec.selector", selector)
        if len(errors) > before:  # without a valid selector the template cannot be checked
            errors.append(invalid("spec.selector", checks.selector_text(selector), "invalid label selector"))
            return False
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(invalid("spec.selector", {}, _EMPTY_SELECTOR + kind))
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector != {} and not (selector and _selects(selector, labels)):
        errors.append(invalid("spec.template.metadata.labels", dict(sorted(labels.items())), _NO_MATCH))
    validate_template(errors, "spec.template", template)
    return True


def _selects(selector: Obj, labels: Obj) -> bool:
    if not selector.get("matchExpressions"):
        return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return labels_from(selector).matches(labels)


def always_restarts(errors: list[FieldError], template: Obj, kind: str) -> None:
    spec = template.get("spec") or {}
    if spec.get("restartPolicy") != "Always":
        errors.append(not_supported("spec.template.spec.restartPolicy", spec.get("restartPolicy"), ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden_field("spec.template.spec.activeDeadlineSeconds", detail))


def validate_deployment(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    checks.non_negative(errors, "spec", spec, "replicas")
    if selector_and_template(errors, spec, "deployment"):
        always_restarts(errors, spec.get("template") or {}, "ReplicaSet")
    _rolling_strategy(errors, "spec.strategy", spec.get("strategy") or {}, ("Recreate", "RollingUpdate"), "Recreate")
    checks.non_negative(errors, "spec", spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def _rolling_strategy(errors: list[FieldError], path: str, strategy: Obj, allowed: tuple[str, ...], other: str) -> None:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "RollingUpdate":
        if rolling is None:
            errors.append(required(f"{path}.rollingUpdate", "this should be defaulted and never be nil"))
        else:
            _surge(errors, f"{path}.rollingUpdate", rolling)
    elif kind == other:
        if rolling is not None and other == "Recreate":
            detail = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(forbidden_field(f"{path}.rollingUpdate", detail))
    else:
        errors.append(not_supported(path if other == "Recreate" else f"{path}.type", kind, allowed))


def _surge(errors: list[FieldError], path: str, rolling: Obj) -> None:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    checks.int_or_percent(errors, f"{path}.maxUnavailable", unavailable)
    checks.int_or_percent(errors, f"{path}.maxSurge", surge)
    if _is_zero(unavailable) and _is_zero(surge):
        detail = "may not be 0 when `maxSurge` is 0"
        errors.append(invalid(f"{path}.maxUnavailable", unavailable, detail))
    checks.at_most_hundred_percent(errors, f"{path}.maxUnavailable", unavailable)


def _is_zero(value: Any) -> bool:
    return value in (0, None) or checks.percent_of(value) == 0


def validate_replicaset(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    checks.non_negative(errors, "spec", spec, "replicas", "minReadySeconds")
    if selector_and_template(errors, spec, "replicaset"):
        always_restarts(errors, spec.get("template") or {}, "ReplicaSet")
    return errors


def validate_daemonset(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    selector_and_template(errors, spec, "daemonset")
    always_restarts(errors, spec.get("template") or {}, "DaemonSet")
    checks.non_negative(errors, "spec", spec, "minReadySeconds", "revisionHistoryLimit")
    strategy = spec.get("updateStrategy") or {}
    _daemon_strategy(errors, "spec.updateStrategy", strategy)
    return errors


def _daemon_strategy(errors: list[FieldError], path: str, strategy: Obj) -> None:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        errors.append(not_supported(f"{path}.type", kind, ("RollingUpdate", "OnDelete")))
        return
    if rolling is None:
        errors.append(required(f"{path}.rollingUpdate"))
        return
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    for key, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        checks.int_or_percent(errors, f"{path}.rollingUpdate.{key}", value)
        checks.at_most_hundred_percent(errors, f"{path}.rollingUpdate.{key}", value)
    if _is_zero(unavailable) == _is_zero(surge):
        detail = "cannot be 0 when maxSurge is 0" if _is_zero(surge) else "may not be set when maxUnavailable is set"
        key, value = ("maxUnavailable", unavailable) if _is_zero(surge) else ("maxSurge", surge)
        errors.append(invalid(f"{path}.rollingUpdate.{key}", value, detail))


def validate_statefulset(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    _rollout(errors, spec)
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        claim_spec(errors, f"spec.volumeClaimTemplates[{index}].spec", claim.get("spec") or {})
    _counts(errors, spec)
    if spec.get("serviceName"):
        checks.add_invalid(
            errors, "spec.serviceName", spec["serviceName"], names.dns1123_subdomain(spec["serviceName"])
        )
    return [*errors, *_selector_and_pods(spec)]


def validate_changed_statefulset(obj: Obj, old: Obj) -> list[FieldError]:
    """Without what cannot change, and without the template while the stored one is invalid: older servers took them."""
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    _rollout(errors, spec)
    _counts(errors, spec)
    found = _selector_and_pods(spec)
    return [*errors, *found] if found and not _selector_and_pods(old.get("spec") or {}) else errors


def _rollout(errors: list[FieldError], spec: Obj) -> None:
    checks.one_of(errors, "spec.podManagementPolicy", spec.get("podManagementPolicy"), ("OrderedReady", "Parallel"))
    strategy = spec.get("updateStrategy") or {}
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            detail = f"only allowed for updateStrategy 'RollingUpdate'; got {kind}"
            errors.append(invalid("spec.updateStrategy.rollingUpdate", rolling, detail))
    elif kind == "RollingUpdate":
        checks.non_negative(errors, "spec.updateStrategy.rollingUpdate", rolling or {}, "partition")
    else:
        errors.append(invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'"))
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for key in ("whenDeleted", "whenScaled"):
        path = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
        checks.one_of(errors, path, retention.get(key), ("Retain", "Delete"))


def _counts(errors: list[FieldError], spec: Obj) -> None:
    checks.non_negative(errors, "spec", spec, "replicas", "minReadySeconds")
    checks.non_negative(errors, "spec.ordinals", spec.get("ordinals") or {}, "start")


def _selector_and_pods(spec: Obj) -> list[FieldError]:
    errors = FieldErrors()
    claims = spec.get("volumeClaimTemplates")
    selector_and_template(errors, _with_claims(spec, claims) if claims else spec, "statefulset")
    always_restarts(errors, spec.get("template") or {}, "StatefulSet")
    return errors


def _with_claims(spec: Obj, claims: list[Obj]) -> Obj:
    """Return a spec whose template has the volumes that the claims will become."""
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    mounted = [
        {"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        for claim in claims
        if (claim.get("metadata") or {}).get("name")
    ]
    own = {volume["name"] for volume in mounted}
    volumes = [*(v for v in pod.get("volumes") or () if v.get("name") not in own), *mounted]
    return {**spec, "template": {**template, "spec": {**pod, "volumes": volumes}}}


def validate_replication_controller(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    checks.non_negative(errors, "spec", spec, "replicas", "minReadySeconds")
    selector, template = spec.get("selector"), spec.get("template")
    if not selector:
        errors.append(required("spec.selector"))
    checks.labels(errors, "spec.selector", selector)
    if template is None:
        errors.append(required("spec.template"))
        return errors
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector and not _selects({"matchLabels": selector}, labels):
        errors.append(invalid("spec.template.metadata.labels", labels, _NO_MATCH))
    validate_template(errors, "spec.template", template)
    always_restarts(errors, template, "ReplicationController")
    return errors


def validate_pod_template(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    validate_template(errors, "template", obj.get("template") or {})
    return errors


def validate_controller_revision(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    if obj.get("data") is None:
        errors.append(required("data", "data is mandatory"))
    if (obj.get("revision") or 0) < 0:
        errors.append(invalid("revision", obj["revision"], checks.NON_NEGATIVE))
    return errors


# --- updates


def selector_is_immutable(obj: Obj, old: Obj) -> list[FieldError]:
    new, was = (obj.get("spec") or {}).get("selector"), (old.get("spec") or {}).get("selector")
    return [] if new == was else [invalid("spec.selector", new, checks.IMMUTABLE)]


def update_statefulset(obj: Obj, old: Obj) -> list[FieldError]:
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    fixed = ({*new, *was}).difference(_STATEFULSET_FIELDS)
    if any(_plain(new.get(key)) != _plain(was.get(key)) for key in fixed):
        return [forbidden_field("spec", STATEFULSET_FORBIDDEN)]
    return []


def _plain(value: Any) -> Any:
    """Claim templates without the status that older servers did not fill in."""
    if isinstance(value, list):
        return [{k: v for k, v in item.items() if k != "status"} if isinstance(item, dict) else item for item in value]
    return value or None


def update_controller_revision(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    checks.unchanged(errors, "data", obj.get("data"), old.get("data"))
    return errors


def prepare_daemonset(obj: Obj) -> None:
    _annotate_generation(obj, 1)
    set_zero(obj, "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


def prepare_daemonset_update(obj: Obj, old: Obj) -> None:
    """Raise templateGeneration for changes of the template only."""
    text = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "0")
    generation = int(text) if text.isdecimal() else 0
    if (obj.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template"):
        generation += 1
    if generation:
        _annotate_generation(obj, generation)


def _annotate_generation(obj: Obj, generation: int) -> None:
    annotations = part(obj["metadata"], "annotations")
    annotations[TEMPLATE_GENERATION] = str(generation)


def generation_of_deployment(obj: Obj) -> Any:
    """Annotations too: the revision history depends on them."""
    return obj.get("spec"), obj["metadata"].get("annotations") or None


def spec_generation(obj: Obj) -> Any:
    return obj.get("spec")


def _statefulset_warnings(obj: Obj) -> Iterator[str]:
    spec = obj.get("spec") or {}
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from claim_warnings(f"spec.volumeClaimTemplates[{index}]", claim.get("spec") or {})
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {text}"


DEPLOYMENT = Strategy(
    warnings=for_template("spec", "template"),
    default=default_deployment,
    validate=validate_deployment,
    validate_update=selector_is_immutable,
    validate_status=DEPLOYMENT_STATUS,
    generation=generation_of_deployment,
    status_keeps=("labels",),
    scale=WorkloadScale(),
)
REPLICASET = Strategy(
    warnings=for_template("spec", "template"),
    default=default_replicaset,
    prepare_create=lambda obj: set_zero(obj, "replicas"),
    validate=validate_replicaset,
    validate_update=selector_is_immutable,
    validate_status=REPLICASET_STATUS,
    generation=spec_generation,
    scale=WorkloadScale(),
)
STATEFULSET = Strategy(
    warnings=for_template("spec", "template", label=False, more=_statefulset_warnings),
    default=default_statefulset,
    prepare_create=lambda obj: set_zero(obj, "replicas", "availableReplicas"),
    validate=validate_statefulset,
    validate_ratcheting=validate_changed_statefulset,
    validate_update=update_statefulset,
    validate_status=STATEFULSET_STATUS,
    generation=spec_generation,
    scale=WorkloadScale(),
)
DAEMONSET = Strategy(
    warnings=for_template("spec", "template", label=False),
    default=default_daemonset,
    prepare_create=prepare_daemonset,
    prepare_update=prepare_daemonset_update,
    validate=validate_daemonset,
    validate_update=selector_is_immutable,
    validate_status=DAEMONSET_STATUS,
    generation=spec_generation,
)
CONTROLLER_REVISION = Strategy(validate=validate_controller_revision, validate_update=update_controller_revision)
REPLICATION_CONTROLLER = Strategy(
    warnings=for_template("spec", "template"),
    default=default_replication_controller,
    prepare_create=lambda obj: set_zero(obj, "replicas"),
    validate=validate_replication_controller,
    validate_status=REPLICASET_STATUS,
    generation=spec_generation,
    orphan_by_default=True,
    scale=WorkloadScale(plain=True),
    fields={"status.replicas": lambda obj: str((obj.get("status") or {}).get("replicas") or 0)},
)
POD_TEMPLATE = Strategy(
    warnings=for_template("template", label=False),
    default=default_pod_template,
    validate=validate_pod_template,
    generation=lambda obj: obj.get("template"),
    returns_deleted=True,
)
