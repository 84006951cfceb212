"""Jobs and CronJobs."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds.batch import CONTROLLER_UID, CRONJOB, JOB, JOB_NAME
from karmada.kube.kinds.schedule import schedule_problem
from karmada.kube.objects.copying import copy_json
from tests.kube.kinds.texts import texts
from tests.support.cases import cases


def job(**spec: Any) -> dict[str, Any]:
    found = {
        "metadata": {"name": "j", "namespace": "ns", "uid": "u1"},
        "spec": {
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]},
            },
            **spec,
        },
    }
    JOB.default(found)
    JOB.prepare_create(found)
    return found


def test_job_defaults() -> None:
    found = job()
    spec = found["spec"]
    assert (spec["completions"], spec["parallelism"], spec["backoffLimit"]) == (1, 1, 6)
    assert (spec["completionMode"], spec["suspend"], spec["manualSelector"]) == ("NonIndexed", False, False)
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"
    assert found["metadata"]["labels"] == {"a": "b"}
    assert JOB.validate(found) == []


def test_a_work_queue_job_has_no_completions() -> None:
    assert "completions" not in job(parallelism=3)["spec"]


def test_jobs_that_count_failures_by_index_never_give_up_as_a_whole() -> None:
    assert job(completionMode="Indexed", completions=2, backoffLimitPerIndex=1)["spec"]["backoffLimit"] == 2**31 - 1
    assert job(podFailurePolicy={"rules": []})["spec"]["podReplacementPolicy"] == "Failed"


def test_a_job_selects_its_pods_by_its_uid() -> None:
    spec = job()["spec"]
    assert spec["selector"] == {"matchLabels": {CONTROLLER_UID: "u1"}}
    assert spec["template"]["metadata"]["labels"] == {
        "a": "b", CONTROLLER_UID: "u1", JOB_NAME: "j", "controller-uid": "u1", "job-name": "j",
    }  # fmt: skip


def test_a_job_without_labels_shows_the_labels_of_its_pods() -> None:
    found = job()
    assert found["metadata"]["labels"].keys() == {"a"}
    bare = {"metadata": {"name": "j", "uid": "u1"}, "spec": {"template": {"spec": {"restartPolicy": "Never"}}}}
    JOB.default(bare)
    JOB.prepare_create(bare)
    assert bare["metadata"]["labels"] == {
        CONTROLLER_UID: "u1", JOB_NAME: "j", "controller-uid": "u1", "job-name": "j",
    }  # fmt: skip


def test_a_manual_selector_is_left_alone() -> None:
    found = job(manualSelector=True, selector={"matchLabels": {"a": "b"}})
    assert found["spec"]["template"]["metadata"]["labels"] == {"a": "b"}
    assert JOB.validate(found) == []


@cases(
    ({"selector": {"matchLabels": {"x": "y"}}}, "`selector` not auto-generated"),
    (
        {"completionMode": "Indexed", "parallelism": 1},
        "spec.completions: Required value: when completion mode is Indexed",
    ),
    ({"backoffLimit": -1}, "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"),
    ({"manualSelector": True}, "spec.selector: Required value"),
)
def test_job_rules(spec: dict[str, Any], wanted: str) -> None:
    assert any(wanted in text for text in texts(JOB.validate(job(**spec))))


def test_jobs_do_not_always_restart() -> None:
    found = job()
    found["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    wanted = 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    assert texts(JOB.validate(found)) == [wanted]


def test_the_template_of_a_job_is_fixed() -> None:
    old = job()
    new = copy_json(old)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "x:2"
    [error] = JOB.validate_update(new, old)
    assert error.field == "spec.template"
    assert error.body.endswith(": field is immutable")


def test_a_suspended_job_may_move_its_pods_elsewhere() -> None:
    old = job(suspend=True)
    new = copy_json(old)
    new["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "a"}
    new["spec"]["template"]["metadata"]["annotations"] = {"a": "b"}
    assert JOB.validate_update(new, old) == []
    old["status"] = {"startTime": "2026-01-01T00:00:00Z"}
    assert [error.field for error in JOB.validate_update(new, old)] == ["spec.template"]


def test_completions_change_only_with_an_indexed_jobs_size() -> None:
    old, new = job(completions=2, parallelism=2), job(completions=3, parallelism=3)
    assert texts(JOB.validate_update(new, old)) == ["spec.completions: Invalid value: 3: field is immutable"]
    for found in (old, new):
        found["spec"]["completionMode"] = "Indexed"
    assert JOB.validate_update(new, old) == []


def cronjob(**spec: Any) -> dict[str, Any]:
    template = job()["spec"]["template"]
    found = {
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": template}}, **spec},
    }
    CRONJOB.default(found)
    return found


def test_cronjob_defaults() -> None:
    spec = cronjob()["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"]) == ("Allow", False)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    assert "backoffLimit" not in spec["jobTemplate"]["spec"]
    assert CRONJOB.validate(cronjob()) == []


@cases(
    ({"schedule": ""}, "spec.schedule: Required value"),
    (
        {"schedule": "* * * *"},
        'spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]',
    ),
    ({"schedule": "TZ=UTC * * * * *"}, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
    ({"timeZone": ""}, 'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'),
    ({"timeZone": "Mars/Base"}, 'spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base'),
    ({"timeZone": "local"}, "timeZone must be an explicit time zone"),
    (
        {"concurrencyPolicy": "Maybe"},
        'spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", "Forbid", "Replace"',
    ),
)
def test_cronjob_rules(spec: dict[str, Any], wanted: str) -> None:
    found = cronjob()
    found["spec"].update(spec)
    assert any(wanted in text for text in texts(CRONJOB.validate(found)))


def test_a_cronjobs_name_leaves_room_for_its_jobs_names() -> None:
    found = cronjob()
    found["metadata"]["name"] = "c" * 53
    assert "must be no more than 52 characters" in texts(CRONJOB.validate(found))[0]


@cases(
    "* * * * *",
    "0 0 1 1 0",
    "*/15 0-6,22 1-31/2 JAN-mar SUN",
    "5/10 * ? * *",
    "@daily",
    "@every 1h30m",
    "  0 0 * * *  ",
)
def test_schedules_that_are_fine(text: str) -> None:
    assert schedule_problem(text) == ""


@cases(
    ("60 * * * *", "end of range (60) above maximum (59): 60"),
    ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
    ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
    ("*/0 * * * *", "step of range should be a positive number: */0"),
    ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
    ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
    ("1/2/3 * * * *", "too many slashes: 1/2/3"),
    ("@often", "unrecognized descriptor: @often"),
    ("@every soon", "failed to parse duration @every soon"),
)
def test_schedules_that_are_not(text: str, wanted: str) -> None:
    assert wanted in schedule_problem(text)
