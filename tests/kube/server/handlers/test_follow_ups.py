"""What a controller writes right after a create is stored with the create, as if it had been written after it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.client.client import Client
from karmada.kube.kinds import metadata as kinds_metadata
from karmada.kube.kinds.metadata import MAX_ANNOTATIONS
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import AlreadyExists, Invalid
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.follow_ups import FollowUp
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.cases import cases

DEPLOYMENTS, KIND = GVR("apps", "v1", "deployments"), GVK("apps", "v1", "Deployment")
MANAGER = "some-controller"


class Writer:
    def __init__(self, changes: Obj, status: Obj | None = None) -> None:
        self.changes, self.status = changes, status
        self.given: list[str] = []
        self.lost: list[str] = []

    def follow_up(self, obj: Obj) -> FollowUp | None:
        assert obj["metadata"]["uid"], "complete"
        self.given.append(obj["metadata"]["name"])
        return FollowUp(MANAGER, self.changes, self.status)

    def abandoned(self, obj: Obj) -> None:
        self.lost.append(obj["metadata"]["name"])


class Server:
    def __init__(self, runner: asyncio.Runner, server: ApiServer) -> None:
        self.run, self.server = runner.run, server
        self.user, self.controller = server.client(user_agent="kubectl"), server.client(user_agent=MANAGER)
        self.made = 0

    async def with_writer(self, writer: Writer, work: Coroutine[Any, Any, Any]) -> Any:
        self.server.follow_ups.register(KIND, writer)
        try:
            return await work
        finally:
            self.server.follow_ups.unregister(KIND, writer)

    def name(self) -> str:
        self.made += 1
        return f"web-{self.made}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with asyncio.Runner() as runner:
        config = ServerConfig(data_dir=tmp_path_factory.mktemp("server"), storage="memory://", port=0)
        api = ApiServer(config, FakeClock())
        runner.run(api.start())
        yield Server(runner, api)
        runner.run(api.stop())


def deployment(name: str, **metadata: Any) -> Obj:
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    metadata = {"namespace": "default", "name": name, **metadata}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


_marks = st.dictionaries(st.sampled_from(["a", "b", "example.io/c"]), st.sampled_from(["1", "2"]), max_size=3)
_metadata = st.fixed_dictionaries({}, optional={"labels": _marks, "annotations": _marks})
_changed_marks = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["2", "3", None]), max_size=3).map(
    lambda marks: {**marks, "d.io/e": "set"}
)
_changes = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({}, optional={"labels": _changed_marks, "annotations": _changed_marks}),
        "spec": st.fixed_dictionaries({}, optional={"replicas": st.integers(0, 3), "paused": st.just(True)}),
    },
)
_TIMES = {"lastUpdateTime": "2023-11-14T22:13:20Z", "lastTransitionTime": "2023-11-14T22:13:20Z"}
_AVAILABLE = {"type": "Available", "status": "True", "reason": "Fine", "message": "Yes", **_TIMES}
_status = st.none() | st.fixed_dictionaries(
    {"replicas": st.integers(1, 3)},
    optional={"conditions": st.just([_AVAILABLE])},
)


def _timeless(obj: Obj) -> Obj:
    """Without what names the object or counts writes."""
    counted = ("name", "uid", "resourceVersion", "generation")
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key not in counted}}


@settings(max_examples=60, deadline=None)
@given(metadata=_metadata, changes=_changes, status=_status)
def test_the_object_is_what_a_create_and_the_controllers_own_writes_leave(
    server: Server, metadata: Obj, changes: Obj, status: Obj | None
) -> None:
    async def written_after(client: Client, name: str) -> Obj:
        await server.user.create(DEPLOYMENTS, deployment(name, **metadata))
        if changes:
            await client.patch(DEPLOYMENTS, name, "default", changes)
        if status is not None:
            await client.patch(DEPLOYMENTS, name, "default", {"status": status}, subresource="status")
        return await server.user.get(DEPLOYMENTS, name, "default")

    one, other = server.name(), server.name()
    apart = server.run(written_after(server.controller, one))
    creating = server.user.create(DEPLOYMENTS, deployment(other, **metadata))
    together = server.run(server.with_writer(Writer(changes, status), creating))
    stored = server.run(server.user.get(DEPLOYMENTS, other, "default"))
    assert stored == together
    assert _timeless(together) == _timeless(apart)
    assert together["metadata"]["generation"] == 1


def test_one_create_is_one_write(server: Server) -> None:
    revision = server.server.store.revision
    writer = Writer({"metadata": {"labels": {"a": "1"}}}, {"replicas": 1})
    made = server.run(server.with_writer(writer, server.user.create(DEPLOYMENTS, deployment(server.name()))))
    assert int(made["metadata"]["resourceVersion"]) == revision + 1 == server.server.store.revision


def test_nothing_follows_a_dry_run_or_a_generated_name(server: Server) -> None:
    writer = Writer({"metadata": {"labels": {"a": "1"}}})
    body = deployment("", generateName="web-")
    del body["metadata"]["name"]
    generated = server.run(server.with_writer(writer, server.user.create(DEPLOYMENTS, body)))
    dry = server.user.create(DEPLOYMENTS, deployment(server.name()), dry_run=True)
    assert "labels" not in server.run(server.with_writer(writer, dry))["metadata"]
    assert "labels" not in generated["metadata"]
    assert writer.given == []


def test_a_controller_learns_that_its_follow_up_was_not_stored(server: Server) -> None:
    writer, name = Writer({"metadata": {"labels": {"a": "1"}}}), server.name()
    server.run(server.with_writer(writer, server.user.create(DEPLOYMENTS, deployment(name))))
    with pytest.raises(AlreadyExists):
        server.run(server.with_writer(writer, server.user.create(DEPLOYMENTS, deployment(name))))
    assert (writer.given, writer.lost) == ([name, name], [name])


def test_what_is_invalid_is_refused_before_any_controller_gets_it(server: Server) -> None:
    writer, wrong = Writer({}), deployment(server.name())
    del wrong["spec"]["template"]
    with pytest.raises(Invalid):
        server.run(server.with_writer(writer, server.user.create(DEPLOYMENTS, wrong)))
    assert writer.given == []


@cases(
    {"metadata": {"annotations": {"a": "x" * MAX_ANNOTATIONS}}},
    {"metadata": {"labels": {"a b": "c"}}},
    {"spec": {"replicas": -1}},
)
def test_a_follow_up_that_would_be_refused_as_a_write_is_left_out(changes: Obj, server: Server) -> None:
    writer, name = Writer(changes, {"replicas": 1}), server.name()
    made = server.run(server.with_writer(writer, server.user.create(DEPLOYMENTS, deployment(name))))
    assert "annotations" not in made["metadata"]
    assert "labels" not in made["metadata"]
    assert made["spec"]["replicas"] == 1
    assert "replicas" not in made["status"]
    assert not any(entry["manager"] == MANAGER for entry in made["metadata"]["managedFields"])
    assert writer.lost == [name]


def test_the_status_that_follows_is_validated_too(server: Server) -> None:
    writer, name = Writer({}, {"replicas": -1}), server.name()
    made = server.run(server.with_writer(writer, server.user.create(DEPLOYMENTS, deployment(name))))
    assert "replicas" not in made["status"]
    assert writer.lost == [name]


def test_annotations_that_are_too_large_already_hold_no_clean_up(server: Server, monkeypatch: Any) -> None:
    name = server.name()
    marks = {"annotations": {"a": "x" * MAX_ANNOTATIONS}, "finalizers": ["example.com/hold"]}
    with monkeypatch.context() as earlier:
        earlier.setattr(kinds_metadata, "MAX_ANNOTATIONS", 4 * MAX_ANNOTATIONS)
        server.run(server.user.create(DEPLOYMENTS, deployment(name, **marks)))

    def patch(body: Obj) -> Obj:
        return server.run(server.user.patch(DEPLOYMENTS, name, "default", body))

    with pytest.raises(Invalid, match="Too long: may not be more than 262144 bytes"):
        patch({"metadata": {"annotations": {"b": "y"}}})
    assert patch({"spec": {"replicas": 3}, "metadata": {"labels": {"a": "b"}}})["spec"]["replicas"] == 3
    assert len(patch({"metadata": {"annotations": {"a": "x" * (MAX_ANNOTATIONS - 1)}}})["metadata"]["annotations"])
    assert "finalizers" not in patch({"metadata": {"finalizers": None}})["metadata"]
