"""The status of a template, from what its clusters report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from karmada.controllers.binding_status.template_status import TemplateStatus
from karmada.interpreter.operations import InterpreterError
from karmada.kube.objects.errors import ApiError, Conflict, NotFound
from karmada.kube.objects.types import Obj

REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}


class FakeTemplates:
    """A server with one template."""

    def __init__(self) -> None:
        self.template: Obj | None = {**REFERENCE, "metadata": {"name": "web"}, "status": {"replicas": 1}}
        self.reads = 0
        self.written: list[Obj] = []
        self.failures: list[Exception] = []

    async def of(self, _reference: Obj) -> Obj | None:
        self.reads += 1
        return self.template

    async def write_status(self, template: Obj) -> Obj:
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, NotFound):
                self.template = None
            raise failure
        self.written.append(template["status"])
        return {**template, "metadata": {**template["metadata"], "resourceVersion": "2"}}


class FakeInterpreter:
    """Adds up replicas."""

    def __init__(self) -> None:
        self.knows = True
        self.error: InterpreterError | None = None

    def enabled(self, *_question: Any) -> bool:
        return self.knows

    async def aggregate_status(self, obj: Obj, items: Sequence[Obj]) -> Obj:
        if self.error is not None:
            raise self.error
        return {**obj, "status": {"replicas": sum(item["status"]["replicas"] for item in items)}}


class FakeRecorder:
    def __init__(self) -> None:
        self.emitted: list[tuple[str, str, str]] = []

    def event(self, _obj: Obj, *event: str) -> None:
        self.emitted.append(event)  # type: ignore[arg-type]


@pytest.fixture
def templates() -> FakeTemplates:
    return FakeTemplates()


@pytest.fixture
def interpreter() -> FakeInterpreter:
    return FakeInterpreter()


@pytest.fixture
def recorder() -> FakeRecorder:
    return FakeRecorder()


@pytest.fixture
def status(templates: FakeTemplates, interpreter: FakeInterpreter) -> TemplateStatus:
    return TemplateStatus(interpreter, templates)  # type: ignore[arg-type]


def items(*replicas: int) -> list[Obj]:
    return [{"clusterName": f"m{n}", "status": {"replicas": count}} for n, count in enumerate(replicas)]


async def test_another_status_is_written_and_reported(
    status: TemplateStatus, templates: FakeTemplates, recorder: FakeRecorder
) -> None:
    await status.update(REFERENCE, items(1, 2), recorder)  # type: ignore[arg-type]
    assert templates.written == [{"replicas": 3}]
    assert recorder.emitted == [
        ("Normal", "AggregateStatusSucceed", "Update Resource with AggregatedStatus successfully.")
    ]


async def test_the_same_status_is_not_written(
    status: TemplateStatus, templates: FakeTemplates, recorder: FakeRecorder
) -> None:
    await status.update(REFERENCE, items(1), recorder)  # type: ignore[arg-type]
    assert (templates.written, recorder.emitted) == ([], [])


async def test_a_kind_nobody_can_sum_up_is_not_even_read(
    status: TemplateStatus, templates: FakeTemplates, interpreter: FakeInterpreter, recorder: FakeRecorder
) -> None:
    interpreter.knows = False
    await status.update(REFERENCE, items(5), recorder)  # type: ignore[arg-type]
    assert templates.reads == 0


async def test_a_lost_race_is_run_again_on_what_is_there_now(
    status: TemplateStatus, templates: FakeTemplates, recorder: FakeRecorder
) -> None:
    templates.failures = [Conflict("late"), Conflict("late")]
    await status.update(REFERENCE, items(4), recorder)  # type: ignore[arg-type]
    assert templates.reads == 3
    assert templates.written == [{"replicas": 4}]


async def test_a_race_that_is_always_lost_is_left_for_later(
    status: TemplateStatus, templates: FakeTemplates, recorder: FakeRecorder
) -> None:
    templates.failures = [Conflict("late")] * 9
    with pytest.raises(Conflict):
        await status.update(REFERENCE, items(4), recorder)  # type: ignore[arg-type]
    assert recorder.emitted == []


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_template_that_is_gone_needs_no_status(
    status: TemplateStatus, templates: FakeTemplates, recorder: FakeRecorder, when: str
) -> None:
    if when == "before":
        templates.template = None
    else:
        templates.failures = [NotFound("gone")]
    await status.update(REFERENCE, items(4), recorder)  # type: ignore[arg-type]
    assert (templates.written, recorder.emitted) == ([], [])


@pytest.mark.parametrize("error", [ApiError("no room"), InterpreterError("no idea")])
async def test_a_failure_is_reported_and_retried(
    status: TemplateStatus,
    templates: FakeTemplates,
    interpreter: FakeInterpreter,
    recorder: FakeRecorder,
    error: Exception,
) -> None:
    if isinstance(error, InterpreterError):
        interpreter.error = error
    else:
        templates.failures = [error]
    with pytest.raises(type(error)):
        await status.update(REFERENCE, items(4), recorder)  # type: ignore[arg-type]
    assert recorder.emitted == [("Warning", "AggregateStatusFailed", str(error))]
