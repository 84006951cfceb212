"""The spec of a claim: defaults and rules, and who applies them."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds import claims, storage
from karmada.kube.kinds import workloads as w
from karmada.kube.kinds.volume_rules import volumes
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import FieldError
from tests.support.cases import cases

Spec = dict[str, Any]
_CLAIM = {"apiGroup": "", "kind": "PersistentVolumeClaim", "name": "other"}
_SNAPSHOT = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}
_MODES = '"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'


def spec(**more: Any) -> Spec:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **more}


def errors_of(found: Spec) -> list[str]:
    errors: list[FieldError] = []
    claims.claim_spec(errors, "spec", found)
    return [str(error) for error in errors]


@cases(
    spec(),
    spec(dataSource=_CLAIM),
    spec(dataSource=_SNAPSHOT, dataSourceRef=_SNAPSHOT),
    spec(dataSourceRef={**_SNAPSHOT, "namespace": "elsewhere"}),
    spec(storageClassName="", volumeAttributesClassName=""),
)
def test_valid_claims(valid: Spec) -> None:
    assert errors_of(valid) == []


@cases(
    ({"resources": {}}, ["spec.accessModes: Required value: at least 1 access mode is required",
                         "spec.resources[storage]: Required value"]),
    (spec(accessModes=["Odd"]), [f'spec.accessModes: Unsupported value: "Odd": supported values: {_MODES}']),
    (spec(accessModes=["ReadWriteOnce", "ReadWriteOncePod"]),
     ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"]),
    (spec(resources={"requests": {"storage": "0"}}),
     ['spec.resources[storage]: Invalid value: "0": must be greater than zero']),
    (spec(volumeMode="Odd"),
     ['spec.volumeMode: Unsupported value: "Odd": supported values: "Block", "Filesystem"']),
    (spec(dataSource={"kind": "Thing", "name": "t"}),
     ["spec.dataSource: Invalid value: \"Thing\": must be 'PersistentVolumeClaim' when referencing the default "
      "apiGroup"]),
    (spec(dataSource={"kind": "PersistentVolumeClaim"}), ["spec.dataSource.name: Required value"]),
    (spec(dataSource=_CLAIM, dataSourceRef=_SNAPSHOT),
     ['spec: Invalid value: "spec.dataSource": must match dataSourceRef']),
)  # fmt: skip
def test_invalid_claims(found: Spec, wanted: list[str]) -> None:
    assert errors_of(found) == wanted


@cases("storageClassName", "volumeAttributesClassName")
def test_class_names_are_subdomains(key: str) -> None:
    [error] = errors_of(spec(**{key: "A B"}))
    assert error.startswith(f'spec.{key}: Invalid value: "A B": a lowercase RFC 1123 subdomain must consist of')


def test_only_the_claim_itself_repeats_its_data_source() -> None:
    claim = {"metadata": {"name": "c"}, "spec": spec(dataSource=_SNAPSHOT)}
    storage.default_claim(claim)
    assert claim["spec"]["dataSourceRef"] == _SNAPSHOT
    template = {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "c"}, "spec": spec(dataSource=_SNAPSHOT)}]}}
    w.STATEFULSET.default(template)
    assert "dataSourceRef" not in template["spec"]["volumeClaimTemplates"][0]["spec"]


def test_the_claim_of_an_ephemeral_volume_is_validated() -> None:
    errors: list[FieldError] = []
    volumes(errors, "volumes", [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec(volumeMode="Odd")}}}])
    [error] = errors
    assert str(error).startswith("volumes[0].ephemeral.volumeClaimTemplate.spec.volumeMode: Unsupported value")


def stateful_set(claim: Spec, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "metadata": {"name": "db", "namespace": "ns", "uid": "u"},
        "spec": {
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "c", "image": "db:1"}]},
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
            **more,
        },
    }
    w.STATEFULSET.default(found)
    return found


def changed(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    assert w.STATEFULSET.validate_ratcheting is not None
    errors = [*w.STATEFULSET.validate_ratcheting(new, old), *w.STATEFULSET.validate_update(new, old)]
    return [str(error) for error in errors]


def test_claim_templates_are_validated_when_a_statefulset_is_created() -> None:
    assert w.STATEFULSET.validate(stateful_set(spec())) == []
    found = [str(error) for error in w.STATEFULSET.validate(stateful_set(spec(accessModes=[]), replicas=-1))]
    assert found == [
        "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    ]


def test_a_statefulset_that_is_stored_with_an_invalid_claim_can_still_be_changed() -> None:
    old = stateful_set(spec(accessModes=[]))
    assert changed(stateful_set(spec(accessModes=[]), replicas=3), old) == []
    assert changed(stateful_set(spec()), old) == [f"spec: Forbidden: {w.STATEFULSET_FORBIDDEN}"]


def test_an_invalid_template_stays_changeable_and_a_valid_one_stays_valid() -> None:
    valid, invalid = stateful_set(spec()), stateful_set(spec())
    invalid["spec"]["template"]["spec"]["containers"][0]["name"] = "No Name"
    other = copy_json(invalid)
    other["spec"]["replicas"] = 5
    assert changed(other, invalid) == []
    assert any("spec.template.spec.containers[0].name" in error for error in changed(invalid, valid))


def test_a_negative_history_limit_of_a_statefulset_is_no_error() -> None:
    assert w.STATEFULSET.validate(stateful_set(spec(), revisionHistoryLimit=-1)) == []
