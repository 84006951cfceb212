"""A merge patch of the status of a custom resource takes a short way, and leaves what the long one leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.kube.server.handlers.patching import Patcher
from karmada.kube.server.handlers.subresources import writes_status_alone
from tests.support.eventually import eventually

CRDS, REPORTS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions"), GVR("example.io", "v1", "reports")
UID, VERSION = "THE-UID", "THE-VERSION"
"""In a patch: those of the object."""
STATUS: Obj = {
    "type": "object",
    "properties": {
        "at": {"type": "string", "format": "date-time"},
        "phase": {"type": "string", "enum": ["Up", "Down"]},
        "count": {"type": "integer", "minimum": 0},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "nested": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer", "default": 7}}},
        "items": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key"],
            "items": {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}}},
        },
    },
    "x-kubernetes-validations": [{"rule": "!has(self.count) || self.count < 3", "message": "too many"}],
}
CRD: Obj = {
    "metadata": {"name": "reports.example.io"},
    "spec": {
        "group": "example.io",
        "scope": "Namespaced",
        "names": {"plural": "reports", "singular": "report", "kind": "Report", "listKind": "ReportList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "status": STATUS,
                        },
                    }
                },
            }
        ],
    },
}


class Server:
    def __init__(self, runner: asyncio.Runner, api: ApiServer) -> None:
        self.run = runner.run
        self.client = api.client(user_agent="reporter")
        self.api = api
        self.made = 0
        self.taken = 0
        """Patches that took the short way."""

    def after(self, patches: list[Obj]) -> list[Any]:
        """What each patch of a new object leaves in the store, or how it is refused; without uids and revisions."""
        self.made += 1
        name = f"report-{self.made:06d}"
        body = {"metadata": {"name": name, "labels": {"a": "b"}, "finalizers": ["x.io/y"]}, "spec": {"size": 1}}
        live = self.run(self.client.create(REPORTS, body, "default"))
        return [self._one(name, live["metadata"]["uid"], patch) for patch in patches]

    def _one(self, name: str, uid: str, patch: Obj) -> Any:
        revision = self.run(self.client.get(REPORTS, name, "default"))["metadata"]["resourceVersion"]
        text = orjson.dumps(patch).replace(UID.encode(), uid.encode()).replace(VERSION.encode(), revision.encode())
        sent: Any = orjson.loads(text)
        before = copy_json(sent)
        try:
            answer = self.run(self.client.patch(REPORTS, name, "default", sent, subresource="status"))
        except ApiError as error:
            return error.code, str(error).replace(name, "").replace(uid, "").replace(revision, "")
        assert sent == before
        stored = self.run(self.api.store.get(f"example.io/reports/default/{name}"))
        assert stored is not None
        assert orjson.loads(stored.value) == {
            **answer,
            "metadata": {key: value for key, value in answer["metadata"].items() if key != "resourceVersion"},
        }
        return stored.value.replace(name.encode(), b"name").replace(uid.encode(), b"uid")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with asyncio.Runner() as runner:
        config = ServerConfig(data_dir=tmp_path_factory.mktemp("server"), storage="memory://", port=0)
        api = ApiServer(config, FakeClock())
        runner.run(api.start())
        found = Server(runner, api)
        runner.run(found.client.create(CRDS, CRD))
        runner.run(eventually(lambda: api.registry.get(REPORTS) is not None))
        with pytest.MonkeyPatch.context() as patched:
            original = Patcher.status_of

            def status_of(self: Patcher, live: Obj) -> Obj | None:
                made = original(self, live)
                found.taken += made is not None
                return made

            patched.setattr(Patcher, "status_of", status_of)
            yield found
        runner.run(api.stop())


def both(server: Server, patches: list[Obj]) -> tuple[list[Any], list[Any]]:
    """The outcomes by the short way, where it is taken, and by the long one."""
    short = server.after(patches)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Patcher, "status_of", lambda _self, _live: None)
        return short, server.after(patches)


_scalars = st.none() | st.booleans() | st.integers(-1, 4) | st.sampled_from(["", "Up", "2026-01-02T03:04:05Z", "key"])
_names = st.sampled_from(["at", "phase", "count", "free", "nested", "items", "a", "b", "key", "unknown"])
_values = st.recursive(_scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3))
_right = st.fixed_dictionaries(
    {},
    optional={
        "at": st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"]),
        "phase": st.sampled_from(["Up", "Down"]) | st.none(),
        "count": st.integers(0, 3),
        "free": st.dictionaries(_names, _values, max_size=3),
        "nested": st.dictionaries(st.just("a"), st.sampled_from(["x", "y"]), max_size=1) | st.just({"b": 1}),
        "items": st.lists(st.fixed_dictionaries({"key": st.sampled_from(["one", "two"])}), max_size=2),
    },
)
_metadata = st.fixed_dictionaries(
    {},
    optional={
        "uid": st.sampled_from([UID, UID, "another"]),
        "resourceVersion": st.sampled_from([VERSION, VERSION, "1", "x", ""]),
        "labels": st.just({"a": "c"}),
        "managedFields": st.just([]),
    },
)
_patches = st.fixed_dictionaries(
    {},
    optional={
        "status": _right | _right | _right | _values,
        "metadata": _metadata | st.none(),
        "spec": st.just({"size": 2}),
        "kind": st.sampled_from(["Report", "Other"]),
    },
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_patches, min_size=1, max_size=3))
@example([{"metadata": {"uid": UID, "resourceVersion": VERSION}, "status": {"phase": "Up", "items": [{"key": "one"}]}}])
@example([{"status": {"nested": {"a": "x", "b": 1}}}, {"status": {"nested": {"a": None}, "phase": None}}])
@example([{"status": {"nested": {"a": "x"}}}])  # a default is missing
@example([{"status": {"count": 3}}])  # a rule is broken
@example([{"status": {"free": {"x": None}}}])
@example([{"status": {}}, {"status": {}}, {"status": None}])
def test_the_short_way_leaves_and_refuses_what_the_long_one_does(server: Server, patches: list[Obj]) -> None:
    short, long = both(server, patches)
    assert short == long


def test_a_report_as_controllers_send_it_takes_the_short_way(server: Server) -> None:
    before = server.taken
    server.after(
        [
            {"metadata": {"uid": UID}, "status": {"at": "2026-01-02T03:04:05Z", "items": [{"key": "one"}]}},
            {"metadata": {"uid": UID, "resourceVersion": VERSION}, "status": {"phase": "Up", "free": {"x": 1}}},
            {"status": {"phase": "Down", "at": None}},
        ]
    )
    assert server.taken == before + 3


def test_a_kind_whose_status_is_written_with_more_than_the_status_goes_the_long_way(server: Server) -> None:
    """As a Cluster's: it may change the spec, too, and its defaults and canonical form are made in place."""
    resource = server.api.registry.get(REPORTS)
    assert resource is not None
    part = resource.subresources["status"]
    assert writes_status_alone(resource, part)
    assert not writes_status_alone(resource, replace(part, project=lambda _live, body: body))
    strategy = resource.strategy
    for other in (replace(strategy, default_status=None), replace(strategy, status_only=False)):
        assert not writes_status_alone(replace(resource, strategy=other), part)


async def _twice(server: Server, name: str, patch: Obj) -> list[Obj | BaseException]:
    return await asyncio.gather(
        *(server.client.patch(REPORTS, name, "default", patch, subresource="status") for _ in range(2)),
        return_exceptions=True,
    )


def test_of_two_at_the_same_time_that_name_a_version_one_is_refused(server: Server) -> None:
    live = server.run(server.client.create(REPORTS, {"metadata": {"name": "raced"}}, "default"))
    meta = {"resourceVersion": live["metadata"]["resourceVersion"]}
    outcomes = server.run(_twice(server, "raced", {"metadata": meta, "status": {"phase": "Up"}}))
    assert sorted(type(outcome) is Conflict for outcome in outcomes) == [False, True]


def test_a_shared_object_is_not_changed_by_a_patch_of_its_status(server: Server) -> None:
    name = "unchanged"
    server.run(server.client.create(REPORTS, {"metadata": {"name": name}}, "default"))
    first = server.run(
        server.client.patch(REPORTS, name, "default", {"status": {"free": {"x": {"y": 1}}}}, subresource="status")
    )
    before = copy_json(dict(first))
    patch = {"status": {"free": {"x": {"z": 2}}}}
    second = server.run(server.client.patch(REPORTS, name, "default", patch, subresource="status"))
    assert first == before
    assert second["status"]["free"] == {"x": {"y": 1, "z": 2}}
