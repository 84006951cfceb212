"""Jobs and CronJobs.

A Job's selector is made from its uid unless the user insists on one, so that two Jobs never share pods. Nearly
everything of a Job is fixed once it exists; while it is suspended and has never started, where its pods may run is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import fill, fill_text, part
from karmada.kube.kinds.job_policies import job_policies
from karmada.kube.kinds.pod_warnings import for_template
from karmada.kube.kinds.podspec import default_template, validate_template
from karmada.kube.kinds.resource import Strategy
from karmada.kube.kinds.schedule import schedule_problem, zone_is_known
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, invalid, not_supported, required
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.types import Obj

MANY_INDEXES, MANY_AT_ONCE = 100_000, 10_000
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
_LEGACY_UID, _LEGACY_NAME = "controller-uid", "job-name"
_MAX_CRON_NAME = 52
_MAX_INDEXED = 100_000
_FIXED = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")


def default_job_spec(spec: Obj) -> None:
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(spec, parallelism=1, backoffLimit=checks.MAX_INT32 if spec.get("backoffLimitPerIndex") is not None else 6)
    fill_text(spec, completionMode="NonIndexed")
    fill(spec, suspend=False, manualSelector=False)
    policy = spec.get("podFailurePolicy")
    fill_text(spec, podReplacementPolicy="TerminatingOrFailed" if policy is None else "Failed")
    for rule in (policy or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            fill_text(pattern, status="True")
    default_template(part(spec, "template"))


def default_job(obj: Obj) -> None:
    spec = part(obj, "spec")
    default_job_spec(spec)
    labels = (spec["template"].get("metadata") or {}).get("labels")
    meta = part(obj, "metadata")
    if labels and not meta.get("labels"):
        meta["labels"] = dict(labels)


def default_cronjob(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill_text(spec, concurrencyPolicy="Allow")
    fill(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    # A template's Job gets its mode, selector and policies when it becomes a Job.
    default_template(part(part(part(spec, "jobTemplate"), "spec"), "template"))


def prepare_job(obj: Obj) -> None:
    """Add the selector and the labels that tie pods to this Job."""
    obj["status"] = {}
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    labels = part(part(spec["template"], "metadata"), "labels")
    uid, name = meta.get("uid") or "", meta.get("name") or ""
    for key, value in ((_LEGACY_UID, uid), (_LEGACY_NAME, name), (CONTROLLER_UID, uid), (JOB_NAME, name)):
        labels.setdefault(key, value)
    part(part(spec, "selector"), "matchLabels").setdefault(CONTROLLER_UID, uid)
    if not meta.get("labels"):
        meta["labels"] = dict(labels)


# --- rules


def job_spec(errors: list[FieldError], path: str, spec: Obj) -> None:
    checks.non_negative(
        errors, path, spec, "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
        "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes",
    )  # fmt: skip
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    mode = spec.get("completionMode")
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        errors.append(not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        if spec.get("completions") is None:
            errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
        if (spec.get("parallelism") or 0) > _MAX_INDEXED:
            detail = f"must be less than or equal to {_MAX_INDEXED} when completion mode is Indexed"
            errors.append(invalid(f"{path}.parallelism", spec["parallelism"], detail))
    elif spec.get("backoffLimitPerIndex") is not None:
        errors.append(
            invalid(f"{path}.backoffLimitPerIndex", spec["backoffLimitPerIndex"], "requires indexed completion mode")
        )
    job_policies(errors, path, spec)
    template = spec.get("template") or {}
    validate_template(errors, f"{path}.template", template)
    _restart_policy(errors, f"{path}.template.spec.restartPolicy", spec, template)


def _restart_policy(errors: list[FieldError], path: str, spec: Obj, template: Obj) -> None:
    policy = (template.get("spec") or {}).get("restartPolicy") or ""
    if policy in ("", "Always"):
        errors.append(required(path, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errors.append(not_supported(path, policy, ("OnFailure", "Never")))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        errors.append(invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified'))


def validate_job(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    job_spec(errors, "spec", spec)
    selector = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if selector is None:
        errors.append(required("spec.selector"))
        return errors
    checks.label_selector(errors, "spec.selector", selector)
    if not spec.get("manualSelector"):
        _generated(errors, meta, selector, labels)
    if not any(error.field.startswith("spec.selector.") for error in errors) and not _selects(selector, labels):
        detail = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", dict(sorted(labels.items())), detail))
    return errors


def _selects(selector: Obj, labels: Obj) -> bool:
    return labels_from(selector).matches(labels)


def _generated(errors: list[FieldError], meta: Obj, selector: Obj, labels: Obj) -> None:
    uid, name = meta.get("uid") or "", meta.get("name") or ""
    for key, value in ((_LEGACY_UID, uid), (_LEGACY_NAME, name)):
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            errors.append(required(path, f"must be '{value}'"))
        elif labels[key] != value:
            errors.append(invalid(path, labels, f"must be '{value}'"))
    wanted = ({CONTROLLER_UID: uid}, {_LEGACY_UID: uid})
    if selector.get("matchExpressions") or selector.get("matchLabels") not in wanted:
        errors.append(invalid("spec.selector", selector, "`selector` not auto-generated"))


def validate_cronjob(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    name = obj["metadata"].get("name") or ""
    if len(name) > _MAX_CRON_NAME:
        errors.append(invalid("metadata.name", name, f"must be no more than {_MAX_CRON_NAME} characters"))
    _schedule(errors, spec)
    checks.non_negative(
        errors, "spec", spec, "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"
    )
    checks.one_of(errors, "spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    if job.get("manualSelector"):
        errors.append(not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false")))
    job_spec(errors, "spec.jobTemplate.spec", job)
    return errors


def _schedule(errors: list[FieldError], spec: Obj) -> None:
    schedule, zone = spec.get("schedule"), spec.get("timeZone")
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        problem = schedule_problem(schedule)
        if problem:
            errors.append(invalid("spec.schedule", schedule, problem))
        if "TZ" in schedule:
            detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            errors.append(invalid("spec.schedule", schedule, detail))
    if zone is None:
        return
    if not zone:
        errors.append(invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string"))
    elif zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(invalid("spec.timeZone", zone, detail))
    elif not zone_is_known(zone):
        errors.append(invalid("spec.timeZone", zone, f"unknown time zone {zone}"))


# --- updates


def validate_job_status(obj: Obj, old: Obj) -> list[FieldError]:
    """Validate that a Job that becomes complete met its criteria, has a start and an end, and runs no pod any more."""
    errors = FieldErrors()
    status = obj.get("status") or {}
    checks.non_negative(errors, "status", status, "active", "succeeded", "failed", "terminating")
    if not _has(status, "Complete") or _has(old.get("status") or {}, "Complete"):
        return errors
    if not status.get("completionTime"):
        errors.append(required("status.completionTime", "completionTime is required for Complete jobs"))
    if not _has(status, "SuccessCriteriaMet"):
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.append(FieldError("status.conditions", "FieldValueInvalid", f"Invalid value: {detail}"))
    if status.get("active"):
        errors.append(invalid("status.active", status["active"], "active>0 is invalid for finished job"))
    if not status.get("startTime"):
        errors.append(required("status.startTime", "startTime is required for finished job"))
    return errors


def _has(status: Obj, condition: str) -> bool:
    found = status.get("conditions") or ()
    return any(c.get("type") == condition and c.get("status") == "True" for c in found)


def update_job(obj: Obj, old: Obj) -> list[FieldError]:
    errors = FieldErrors()
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    if new.get("completions") != was.get("completions") and not _elastic(new, was):
        errors.append(invalid("spec.completions", new.get("completions"), checks.IMMUTABLE))
    checks.keys_unchanged(errors, "spec", new, was, _FIXED)
    template, before = new.get("template") or {}, was.get("template") or {}
    if template != before:
        kept = _with_scheduling_of(template, before) if _never_started(old) else template
        if kept != before:
            errors.append(invalid("spec.template", template, checks.IMMUTABLE))
    return errors


def _elastic(new: Obj, was: Obj) -> bool:
    """Return whether completions and parallelism move together: then an indexed Job may change its size."""
    if new.get("completionMode") != "Indexed" or was.get("completionMode") != "Indexed":
        return False
    return new.get("completions") is not None and new.get("completions") == new.get("parallelism")


def _never_started(old: Obj) -> bool:
    return bool((old.get("spec") or {}).get("suspend")) and not (old.get("status") or {}).get("startTime")


def _with_scheduling_of(template: Obj, before: Obj) -> Obj:
    """Return the new template with the old one's metadata and scheduling directives."""
    spec, was = dict(template.get("spec") or {}), before.get("spec") or {}
    for key in _SCHEDULING:
        checks.put_back(spec, was, key)
    affinity, had = dict(spec.get("affinity") or {}), was.get("affinity") or {}
    checks.put_back(affinity, had, "nodeAffinity")
    if affinity or "affinity" in was:
        spec["affinity"] = affinity
    else:
        spec.pop("affinity", None)
    return {**template, "metadata": before.get("metadata") or {}, "spec": spec}


def _spec(obj: Obj) -> Any:
    return obj.get("spec")


def _indexed_warnings(*path: str) -> Callable[[Obj], Iterator[str]]:
    """Yield a job with more indexes than its status can hold."""

    def warnings(obj: Obj) -> Iterator[str]:
        spec = obj
        for key in path:
            spec = spec.get(key) or {}
        many = (spec.get("completions") or 0) > MANY_INDEXES and (spec.get("parallelism") or 0) > MANY_AT_ONCE
        if spec.get("completionMode") == "Indexed" and many:
            yield (
                "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
                "Kubernetes might not be able to track completedIndexes for a big number of indexes"
            )

    return warnings


JOB = Strategy(
    warnings=for_template("spec", "template", more=_indexed_warnings("spec")),
    delete_warning=(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
        "set propagationPolicy=Orphan to suppress this warning"
    ),
    default=default_job,
    prepare_create=prepare_job,
    validate=validate_job,
    validate_update=update_job,
    validate_status=validate_job_status,
    generation=_spec,
    orphan_by_default=True,
    fields={"status.successful": lambda obj: str((obj.get("status") or {}).get("succeeded") or 0)},
)
CRONJOB = Strategy(
    warnings=for_template(
        "spec", "jobTemplate", "spec", "template", more=_indexed_warnings("spec", "jobTemplate", "spec")
    ),
    default=default_cronjob,
    validate=validate_cronjob,
    generation=_spec,
    name_errors=names.dns1123_subdomain,
)
