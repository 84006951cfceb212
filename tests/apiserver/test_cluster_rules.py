from __future__ import annotations

from typing import Any

from karmada.api.cluster import MAX_QUANTITY, default_resource_models
from karmada.api.names import cluster_name_errors as name_errors
from karmada.apiserver.cluster_rules import fill_models, standardised, tidy, validate
from tests.support.cases import cases


def cluster(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "m"}, "spec": {"syncMode": "Push", **spec}}


def model(grade: int, *ranges: tuple[str, str, str]) -> dict[str, Any]:
    return {"grade": grade, "ranges": [{"name": name, "min": low, "max": high} for name, low, high in ranges]}


NO_LIMIT = MAX_QUANTITY
_WANTED = "desired format: hostname, hostname:port, IP or IP:port"


@cases(
    ("member1", []),
    ("", ["must be not empty"]),
    ("a" * 48, []),
    ("a" * 49, ["must be no more than 48 characters"]),
)
def test_a_cluster_name_is_short(name: str, wrong: list[str]) -> None:
    assert name_errors(name) == wrong


@cases("a.b", "A", "-a", "a_b")
def test_a_cluster_name_is_a_label_without_dots(name: str) -> None:
    assert name_errors(name)


@cases(
    ({}, []),
    (
        {"syncMode": ""},
        [
            "spec.syncMode: Required value",
            'spec.syncMode: Unsupported value: "": supported values: "Pull", "Push"',
        ],
    ),
    ({"syncMode": "Both"}, ['spec.syncMode: Unsupported value: "Both": supported values: "Pull", "Push"']),
    ({"apiEndpoint": "https://10.0.0.1:6443"}, []),
    (
        {"apiEndpoint": "member1"},
        [f'spec.apiEndpoint: Invalid value: "member1": host must be provided; {_WANTED}'],
    ),
    (
        {"apiEndpoint": "https://u:p@h"},
        ['spec.apiEndpoint: Invalid value: "https://u:p@h": user information is not permitted in the URL'],
    ),
    (
        {"apiEndpoint": "https://h#f"},
        ['spec.apiEndpoint: Invalid value: "https://h#f": fragments are not permitted in the URL'],
    ),
    (
        {"apiEndpoint": "https://h?q=1"},
        ['spec.apiEndpoint: Invalid value: "https://h?q=1": query parameters are not permitted in the URL'],
    ),
    (
        {"secretRef": {"name": "x"}, "impersonatorSecretRef": {"namespace": "y"}},
        ["spec.secretRef.namespace: Required value", "spec.impersonatorSecretRef.name: Required value"],
    ),
    ({"proxyURL": "socks5://h:1"}, []),
    (
        {"proxyURL": "ftp://h"},
        ['spec.proxyURL: Invalid value: "ftp://h": unsupported scheme "ftp", must be http, https, or socks5'],
    ),
    (
        {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]},
        ['spec.taints[0].effect: Unsupported value: "PreferNoSchedule": supported values: "NoSchedule", "NoExecute"'],
    ),
    ({"taints": [{"key": "a", "effect": ""}]}, ["spec.taints[0].effect: Required value"]),
    (
        {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule", "value": "x"}]},
        [
            'spec.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule","value":"x"}: '
            "taints must be unique by key and effect pair"
        ],
    ),
    ({"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]}, []),
)
def test_what_is_wrong_with_a_spec_is_named(spec: dict[str, Any], errors: list[str]) -> None:
    assert [str(error) for error in validate(cluster(**spec))] == errors


def test_zone_and_zones_exclude_one_another() -> None:
    (error,) = validate(cluster(zone="a", zones=["b"]))
    assert error.field == "spec.spec"
    assert error.body.endswith("Zone and Zones cannot co-exist")


@cases("provider", "region", "zone")
def test_places_are_label_values(field: str) -> None:
    (error,) = validate(cluster(**{field: "not a label"}))
    assert error.field == {"zone": "spec.Zone"}.get(field, f"spec.{field}")


@cases(
    (
        [model(1, ("cpu", "0", "1")), model(1, ("cpu", "1", NO_LIMIT))],
        "The grade of each models should not be the same",
    ),
    (
        [model(0, ("cpu", "0", "1")), model(1, ("cpu", "1", NO_LIMIT), ("memory", "0", NO_LIMIT))],
        "The number of resource types should be the same",
    ),
    (
        [model(0, ("cpu", "0", "0"))],
        "The max value of each resource must be greater than the min value",
    ),
    (
        [model(0, ("cpu", "1", NO_LIMIT))],
        "The min value of each resource in the first model should be 0",
    ),
    (
        [model(0, ("cpu", "0", "1")), model(1, ("memory", "1", NO_LIMIT))],
        "The resource types of each models should be the same",
    ),
    (
        [model(0, ("cpu", "0", "1")), model(1, ("cpu", "2", NO_LIMIT))],
        "Model intervals for resources must be contiguous and non-overlapping",
    ),
    (
        [model(0, ("cpu", "0", "1"))],
        "The max value of each resource in the last model should be MaxInt64",
    ),
)
def test_grades_must_follow_one_another(models: list[Any], wrong: str) -> None:
    (error,) = validate(cluster(resourceModels=models))
    assert error.field == "spec.resourceModels"
    assert error.body.endswith(wrong)


def test_the_usual_grades_are_nine_and_right() -> None:
    models = default_resource_models()
    assert [m["grade"] for m in models] == list(range(9))
    assert validate(cluster(resourceModels=models)) == []


def test_a_new_cluster_gets_the_usual_grades_and_an_old_one_keeps_none() -> None:
    new, old = cluster(), cluster()
    fill_models(new, new=True)
    fill_models(old, new=False)
    assert new["spec"]["resourceModels"] == default_resource_models()
    assert "resourceModels" not in old["spec"]


def test_given_grades_are_ordered_and_begin_with_nothing_and_end_without_limit() -> None:
    given = [model(2, ("cpu", "2", "4")), model(1, ("cpu", "1", "2"))]
    assert standardised(given) == [model(1, ("cpu", "0", "2")), model(2, ("cpu", "2", NO_LIMIT))]
    assert given[0]["ranges"][0]["max"] == "4"
    assert standardised([model(1, ("cpu", "1", "2"))]) == [model(1, ("cpu", "0", NO_LIMIT))]


def test_taints_that_drive_out_say_since_when_and_a_zone_becomes_zones() -> None:
    obj = cluster(zone="a", taints=[{"key": "k", "effect": "NoExecute"}, {"key": "k", "effect": "NoSchedule"}])
    tidy(obj, 1_700_000_000)
    assert obj["spec"]["zones"] == ["a"]
    assert "zone" not in obj["spec"]
    assert obj["spec"]["taints"][0]["timeAdded"] == "2023-11-14T22:13:20Z"
    assert "timeAdded" not in obj["spec"]["taints"][1]
