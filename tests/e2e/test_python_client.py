"""The official Python client: typed and dynamic calls, and list and watch over restarts and compactions."""

from __future__ import annotations

# The client takes dicts where its annotations name models, and leaves half of itself unannotated.
# Its APIs are loaded when a test uses one: each loads hundreds of models, in every process that collects this file.
# mypy: disallow-untyped-calls=False, disable-error-code="arg-type, assignment, misc, operator"
import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError
from urllib3.exceptions import HTTPError

from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.custom_kinds import definition
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.programs import ServerProcess
from tests.support.running import run_server

pytestmark = pytest.mark.e2e
NAMESPACE = "default"


def connect(kubeconfig: Path) -> kubernetes.client.ApiClient:
    return kubernetes.config.new_client_from_config(str(kubeconfig))


def config_map(name: str, **data: str) -> dict[str, Any]:
    meta = {"name": name, "labels": {"mine": "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@pytest.fixture
def api(server: ServerProcess) -> Iterator[kubernetes.client.ApiClient]:
    client = connect(server.kubeconfig)
    yield client
    client.close()


@pytest.fixture
def namespace(api: kubernetes.client.ApiClient) -> Iterator[str]:
    core = kubernetes.client.CoreV1Api(api)
    made = core.create_namespace({"metadata": {"generateName": "py-"}})
    yield made.metadata.name
    core.delete_namespace(made.metadata.name)


def test_the_typed_client_creates_reads_patches_and_deletes(api: kubernetes.client.ApiClient, namespace: str) -> None:
    apps, core = kubernetes.client.AppsV1Api(api), kubernetes.client.CoreV1Api(api)
    deployment: dict[str, Any] = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]},
            },
        },
    }  # fmt: skip
    made = apps.create_namespaced_deployment(namespace, deployment)
    assert made.spec.strategy.type == "RollingUpdate"
    assert made.metadata.creation_timestamp.tzinfo is not None
    container = {"name": "main", "env": [{"name": "A", "value": "b"}]}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    patched = apps.patch_namespaced_deployment("web", namespace, patch)
    assert patched.spec.template.spec.containers[0].image == "nginx"
    assert patched.spec.template.spec.containers[0].env[0].value == "b"
    assert patched.metadata.generation == 2
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    scale.spec.replicas = 5
    assert apps.replace_namespaced_deployment_scale("web", namespace, scale).spec.replicas == 5
    listed = apps.list_namespaced_deployment(namespace, label_selector="!none", limit=1)
    assert [item.metadata.name for item in listed.items] == ["web"]
    deleted = api.sanitize_for_serialization(apps.delete_namespaced_deployment("web", namespace))
    assert (deleted["kind"], deleted["status"]) == ("Status", "Success")
    with pytest.raises(ApiException) as gone:
        apps.read_namespaced_deployment("web", namespace)
    assert (gone.value.status, gone.value.reason) == (404, "Not Found")
    assert 'deployments.apps \\"web\\" not found' in gone.value.body
    assert kubernetes.client.VersionApi(api).get_code().git_version.startswith("v1.")
    assert "v1" in kubernetes.client.CoreApi(api).get_api_versions().versions
    assert any(group.name == "apps" for group in kubernetes.client.ApisApi(api).get_api_versions().groups)
    assert core.list_namespaced_pod(namespace).items == []


def test_the_dynamic_client_finds_and_uses_every_sort_of_resource(
    api: kubernetes.client.ApiClient, namespace: str, tmp_path: Path
) -> None:
    dynamic = DynamicClient(api, cache_file=str(tmp_path / "discovery"))
    maps = dynamic.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(config_map("a", x="1"), namespace=namespace)
    assert maps.get("a", namespace=namespace).data.x == "1"
    merged = maps.patch(
        {"data": {"y": "2"}}, name="a", namespace=namespace, content_type="application/merge-patch+json"
    )
    assert merged.data.to_dict() == {"x": "1", "y": "2"}
    applied = maps.server_side_apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"z": "3"}},
        name="a", namespace=namespace, field_manager="tests",
    )  # fmt: skip
    assert applied.data.z == "3"
    stale = maps.get("a", namespace=namespace).to_dict()
    maps.replace(stale, namespace=namespace)
    stale["data"]["x"] = "changed"
    maps.replace(stale, namespace=namespace)
    stale["data"]["x"] = "too late"
    with pytest.raises(ConflictError):
        maps.replace(stale, namespace=namespace)
    maps.delete("a", namespace=namespace)
    with pytest.raises(NotFoundError):
        maps.get("a", namespace=namespace)
    hpa = dynamic.resources.get(short_names=["hpa"], api_version="autoscaling/v2")
    assert hpa.group_version == "autoscaling/v2"


def test_the_dynamic_client_follows_a_new_crd(api: kubernetes.client.ApiClient, tmp_path: Path) -> None:
    dynamic = DynamicClient(api, cache_file=str(tmp_path / "discovery"))
    crds = dynamic.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    crds.create(definition("py.example.com", "Kite", scope="Cluster"))
    try:
        conditions = lambda: {c.type: c.status for c in crds.get("kites.py.example.com").status.conditions or []}
        eventually_blocking(lambda: conditions().get("Established") == "True")
        kites = dynamic.resources.get(api_version="py.example.com/v1", kind="Kite")
        kites.create({"apiVersion": "py.example.com/v1", "kind": "Kite", "metadata": {"name": "red"}, "size": 3})
        event = next(iter(kites.watch(timeout=int(LIMIT))))
        assert (event["type"], event["object"].metadata.name) == ("ADDED", "red")
        assert kites.get().items[0].size == 3
    finally:
        crds.delete("kites.py.example.com")


class Informer:
    """List, then watch from there; on 410 list again: what every client's informer does, with the official client.

    `seen` has every (type, name, data) in order, lists as ("LISTED", ...); `state` what the informer believes to be
    there; `versions` the resourceVersion of every event.
    """

    def __init__(self, core: kubernetes.client.CoreV1Api) -> None:
        self._core = core
        self.seen: list[tuple[str, str, str]] = []
        self.state: dict[str, str] = {}
        self.versions: list[int] = []
        self.position = ""
        self.lists = 0
        self.expired = 0
        self._stop = False
        self._watch = kubernetes.watch.Watch()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self._stop = True
        self._watch.stop()
        self.thread.join(20)
        assert not self.thread.is_alive()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            while not self._stop:
                self._round()
        except BaseException as error:  # noqa: BLE001 - passed to the test's thread
            self.failure = error

    def _round(self) -> None:
        try:
            if not self.position:
                self._list()
            self.follow()
        except ApiException as error:
            if error.status != 410:
                raise
            self.expired += 1
            self.position = ""
        except HTTPError:
            time.sleep(0.05)  # the server is away; go on from the same position

    def _list(self) -> None:
        listed = self._core.list_namespaced_config_map(NAMESPACE, label_selector="mine")
        self.lists += 1
        self.state = {item.metadata.name: (item.data or {}).get("x", "") for item in listed.items}
        self.position = listed.metadata.resource_version

    def follow(self) -> None:
        self._watch = kubernetes.watch.Watch()
        stream = self._watch.stream(
            self._core.list_namespaced_config_map, NAMESPACE, label_selector="mine",
            resource_version=self.position, timeout_seconds=1, _request_timeout=LIMIT,
        )  # fmt: skip
        for event in stream:
            obj = event["object"]
            name, value = obj.metadata.name, (obj.data or {}).get("x", "")
            self.seen.append((event["type"], name, value))
            self.versions.append(int(obj.metadata.resource_version))
            self.position = obj.metadata.resource_version
            if event["type"] == "DELETED":
                self.state.pop(name, None)
            else:
                self.state[name] = value


def test_a_watch_resumes_over_a_killed_server_with_nothing_missed_or_repeated(own_server: ServerProcess) -> None:
    writer, reader = (
        kubernetes.client.CoreV1Api(connect(own_server.kubeconfig)),
        kubernetes.client.CoreV1Api(connect(own_server.kubeconfig)),
    )
    writer.create_namespaced_config_map(NAMESPACE, config_map("first", x="0"))
    informer = Informer(reader)
    informer.start()
    eventually_blocking(lambda: informer.lists == 1 and informer.position)
    expected = []
    for round_ in range(3):
        for number in range(20):
            name = f"r{round_}-{number:02d}"
            writer.create_namespaced_config_map(NAMESPACE, config_map(name, x=str(round_)))
            expected.append(("ADDED", name, str(round_)))
        writer.patch_namespaced_config_map("first", NAMESPACE, {"data": {"x": str(round_ + 1)}})
        expected.append(("MODIFIED", "first", str(round_ + 1)))
        writer.delete_namespaced_config_map(f"r{round_}-00", NAMESPACE)
        expected.append(("DELETED", f"r{round_}-00", str(round_)))
        own_server.kill()
        own_server.start()
    writer.create_namespaced_config_map(NAMESPACE, config_map("last", x="9"))
    expected.append(("ADDED", "last", "9"))
    eventually_blocking(lambda: informer.failure or "last" in informer.state)
    informer.stop()
    assert informer.seen == expected
    assert informer.versions == sorted(set(informer.versions))
    assert (informer.lists, informer.expired) == (1, 0)
    now = reader.list_namespaced_config_map(NAMESPACE, label_selector="mine").items
    assert informer.state == {item.metadata.name: item.data["x"] for item in now}


@pytest.fixture
async def server_here(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """A server in this process, on a disk, whose history a test can take away."""
    async with run_server(ApiServer(ServerConfig(data_dir=tmp_path, port=0))) as server:
        yield server


async def forget_history(server: ApiServer) -> None:
    """All history up to now becomes unavailable, in memory and in the store."""
    client = server.client()
    for number in range(101):
        await client.create(CONFIG_MAPS, {"metadata": {"name": f"churn-{number}"}}, namespace="kube-public")
    server.cache.collection(GroupResource("", "configmaps")).trim(server.clock.monotonic() + 3600)
    await server.store.compact(server.store.revision)


async def test_an_informer_that_is_too_late_lists_again_and_ends_up_right(server_here: ApiServer) -> None:
    client = server_here.client()
    for name in ("a", "b", "c"):
        await client.create(CONFIG_MAPS, config_map(name, x="1"), namespace=NAMESPACE)
    informer = Informer(kubernetes.client.CoreV1Api(await in_thread(lambda: connect(server_here.kubeconfig))))
    await in_thread(informer._list)
    await client.delete(CONFIG_MAPS, "a", namespace=NAMESPACE)
    await client.create(CONFIG_MAPS, config_map("d", x="1"), namespace=NAMESPACE)
    await forget_history(server_here)
    informer.start()
    await in_thread(lambda: eventually_blocking(lambda: informer.failure or informer.lists == 2))
    assert informer.expired == 1
    assert informer.state == {"b": "1", "c": "1", "d": "1"}
    await client.create(CONFIG_MAPS, config_map("e", x="1"), namespace=NAMESPACE)
    await in_thread(lambda: eventually_blocking(lambda: informer.failure or "e" in informer.state))
    await in_thread(informer.stop)
    assert informer.seen == [("ADDED", "e", "1")]


async def test_a_list_in_pages_over_a_compaction_expires_and_starts_again(server_here: ApiServer) -> None:
    client = server_here.client()
    for name in "abcdef":
        await client.create(CONFIG_MAPS, config_map(name, x="1"), namespace=NAMESPACE)
    core = kubernetes.client.CoreV1Api(await in_thread(lambda: connect(server_here.kubeconfig)))

    def page(token: str = "") -> Any:
        more: dict[str, Any] = {"_continue": token} if token else {}
        return core.list_namespaced_config_map(NAMESPACE, label_selector="mine", limit=2, **more)

    first = await in_thread(page)
    await client.delete(CONFIG_MAPS, "c", namespace=NAMESPACE)
    second = await in_thread(lambda: page(first.metadata._continue))
    assert [item.metadata.name for item in second.items] == ["c", "d"]
    await forget_history(server_here)
    with pytest.raises(ApiException) as expired:
        await in_thread(lambda: page(second.metadata._continue))
    assert expired.value.status == 410
    listed = await in_thread(lambda: core.list_namespaced_config_map(NAMESPACE, label_selector="mine"))
    assert [item.metadata.name for item in listed.items] == list("abdef")


async def in_thread(call: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, call)
