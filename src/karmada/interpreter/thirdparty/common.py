"""What several kinds do alike: replicas in a field, Pods of a template, fields that are reported, Ready conditions."""

from __future__ import annotations

from collections.abc import Iterable

from karmada.api.well_known import TEMPLATE_GENERATION
from karmada.interpreter.dependencies import pod_dependencies, reference
from karmada.interpreter.native.fields import section
from karmada.interpreter.operations import Replicas
from karmada.interpreter.thirdparty.kind import Count, Find, Healthy, Needs, Reflect, Revise
from karmada.interpreter.thirdparty.values import at, numeric, objects_at, replaced, required_number
from karmada.kube.objects import meta
from karmada.kube.objects.types import Obj


def replicas_at(field: str, default: int | None = None) -> Count:
    """Return the number in a field of the spec, of Pods of spec.template.

    Without a default it has to be there.
    """

    def count(obj: Obj, needs: Needs) -> Replicas:
        found = at(obj, "spec", field)
        number = required_number(default if found is None else found, f"spec.{field}")
        return Replicas(int(number), needs(at(obj, "spec", "template")))

    return count


def revise_at(field: str) -> Revise:
    def revise(obj: Obj, replicas: int) -> Obj:
        return replaced(obj, ("spec", field), replicas)

    return revise


def retain_suspend(desired: Obj, observed: Obj) -> Obj:
    """Return whether it is suspended is up to the cluster."""
    suspend = at(observed, "spec", "suspend")
    return desired if suspend is None else replaced(desired, ("spec", "suspend"), suspend)


def fields_of_status(*fields: str, generations: bool = False) -> Reflect:
    """Report these fields; with `generations` also those of the object and of the template it was made from."""

    def reflect(obj: Obj, status: Obj) -> Obj:
        found = {field: status.get(field) for field in fields}
        return {**found, **_generations(obj)} if generations else found

    return reflect


def _generations(obj: Obj) -> Obj:
    metadata = section(obj, "metadata")
    written = section(metadata, "annotations").get(TEMPLATE_GENERATION)
    return {"generation": metadata.get("generation"), "resourceTemplateGeneration": numeric(written)}


def ready_because(*reasons: str) -> Healthy:
    """Healthy when a Ready condition is true for one of these reasons."""

    def healthy(obj: Obj) -> bool:
        return any(
            condition.get("type") == "Ready"
            and condition.get("status") == "True"
            and condition.get("reason") in reasons
            for condition in objects_at(obj, "status", "conditions")
        )

    return healthy


def has_condition(obj: Obj, kind: str) -> bool:
    """Return whether a condition of this type is true."""
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in objects_at(obj, "status", "conditions")
    )


def template_dependencies(template: Obj | None, namespace: str) -> list[Obj]:
    return pod_dependencies(section(template or {}, "spec"), namespace or "default")


def dependencies_of_template(obj: Obj) -> list[Obj]:
    """Return what the Pods of spec.template refer to."""
    return template_dependencies(at(obj, "spec", "template"), meta.namespace(obj))


def references(obj: Obj, kind: str, names: Iterable[str | None]) -> list[Obj]:
    """Return references to objects of a core kind in the object's own namespace; missing names are skipped."""
    return [reference("v1", kind, meta.namespace(obj), name) for name in names if name]


def named_secrets(*paths: tuple[str, ...], service_account: bool = False) -> Find:
    """Secrets whose names stand at these paths, and the ServiceAccount of the spec."""

    def find(obj: Obj) -> list[Obj]:
        found = references(obj, "Secret", [at(obj, *path) for path in paths])
        if service_account:
            found += references(obj, "ServiceAccount", [at(obj, "spec", "serviceAccountName")])
        return found

    return find
