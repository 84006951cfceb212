"""Every kind of fault, let into a whole cluster and taken back, as clients over HTTPS see it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from karmada.kube.client.client import Client
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.times import parse_time
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.behaviours import Outcome, Rule
from karmada.kube.sim.cluster import UnknownComponent
from karmada.kube.sim.faults import kinds
from karmada.kube.sim.faults.injector import UnknownFault
from karmada.kube.sim.kubelet.registration import UnknownNode
from tests.kube.sim.whole_cluster import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PODS,
    Whole,
    condition,
    deployment,
    fetch,
    whole_cluster,
)
from tests.support.eventually import LIMIT, eventually

A_MOMENT = 0.15
"""Long enough that an answer would have come."""


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[Whole]:
    async with whole_cluster(tmp_path) as whole:
        yield whole


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}}


async def reaches(client: Client) -> bool:
    try:
        await client.get(NODES, "small-node-1")
    except ConnectionFailed:
        return False
    return True


async def eventually_reaches(client: Client, wanted: bool) -> None:
    async with asyncio.timeout(30):
        while True:
            if await reaches(client) == wanted:
                return


async def hangs(call: Awaitable[Any]) -> asyncio.Future[Any]:
    """The call as a task that is still without an answer."""
    task = asyncio.ensure_future(call)
    done, _ = await asyncio.wait({task}, timeout=A_MOMENT)
    assert not done, f"answered: {task.result()}"
    return task


# --- the way to the API server


async def test_a_cluster_that_is_down_refuses_connections_and_lives_on(whole: Whole) -> None:
    await whole.deploy(2)
    await whole.sim.faults.inject(kinds.Down())
    assert not await reaches(whole.admin)
    inside = whole.sim.server.client()
    await inside.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 3}})
    await eventually(lambda: whole.ready() == 3)
    await whole.sim.faults.heal()
    assert await reaches(whole.admin)


def _listen(on: socket.socket, port: int) -> None:
    on.bind(("127.0.0.1", port))
    on.listen()


async def test_a_cluster_that_is_down_keeps_its_port(whole: Whole) -> None:
    assert await reaches(whole.admin)
    await whole.sim.faults.inject(kinds.Down())
    with socket.socket() as another:
        another.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            _listen(another, whole.sim.server.port)
    await whole.sim.faults.heal()
    assert await reaches(whole.admin)


async def test_a_flapping_cluster_comes_and_goes_until_it_is_healed(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Flap(up=0.1, down=0.1))
    for wanted in (False, True, False, True):
        await eventually_reaches(whole.admin, wanted)
    await whole.sim.faults.heal()
    assert all([await reaches(whole.admin) for _ in range(5)])


async def test_a_black_hole_answers_neither_reads_nor_writes_until_it_is_healed(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.BlackHole())
    read = await hangs(whole.admin.get(NODES, "small-node-1"))
    write = await hangs(whole.admin.create(CONFIG_MAPS, config_map("late")))
    assert whole.sim.server.cache.collection(CONFIG_MAPS.group_resource).get("default", "late") is None
    await whole.sim.faults.heal()
    assert (await read)["metadata"]["name"] == "small-node-1"
    assert (await write)["metadata"]["name"] == "late"


async def test_a_fault_may_be_about_some_requests_only(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.BlackHole(resources=("deployments.apps",), verbs=("list",)))
    waiting = await hangs(whole.admin.list(DEPLOYMENTS))
    await whole.admin.list(PODS)
    await whole.admin.create(DEPLOYMENTS, deployment("web", 0))
    await whole.sim.faults.heal()
    await waiting


async def test_a_fault_may_be_about_one_program_only(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Errors(code=503, agents="^karmada-scheduler"))
    other = whole.client(user_agent="karmada-scheduler/v1")
    assert (await fetch(other, "/api/v1/nodes")).status == 503
    assert (await fetch(whole.admin, "/api/v1/nodes")).status == 200


async def test_a_slow_cluster_answers_late_and_correctly(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Slow(seconds=0.2))
    began = time.monotonic()
    assert (await whole.admin.get(NODES, "small-node-1"))["metadata"]["name"] == "small-node-1"
    assert time.monotonic() - began >= 0.2


async def test_a_partition_hangs_the_control_plane_and_nobody_else(whole: Whole) -> None:
    karmada = await whole.service_account("karmada-small", "karmada-cluster")
    await karmada.get(NODES, "small-node-1")
    await whole.sim.faults.inject(kinds.Partition())
    waiting = await hangs(karmada.get(NODES, "small-node-1"))
    assert await reaches(whole.admin)
    await whole.sim.faults.heal()
    assert (await waiting)["metadata"]["name"] == "small-node-1"


async def test_a_partition_may_refuse_the_control_plane_instead(whole: Whole) -> None:
    karmada = await whole.service_account("karmada-small", "karmada-cluster")
    async with Followed(karmada) as followed:
        await whole.sim.faults.inject(kinds.Partition(how="refuse"))
        assert not await reaches(karmada)
        assert await reaches(whole.admin)
        await whole.admin.create(CONFIG_MAPS, config_map("unseen"))
        await whole.sim.faults.heal()
        await followed.sees("unseen")


async def test_a_partition_may_silence_only_the_watches_of_the_control_plane(whole: Whole) -> None:
    karmada = await whole.service_account("karmada-small", "karmada-cluster")
    async with Followed(karmada) as followed:
        await whole.sim.faults.inject(kinds.Partition(how="watches"))
        assert await reaches(karmada)
        await whole.admin.create(CONFIG_MAPS, config_map("unseen"))
        await asyncio.sleep(A_MOMENT)
        assert not followed.has("unseen")
        await whole.sim.faults.heal()
        await followed.sees("unseen")


# --- what the API server answers


@pytest.mark.parametrize("code", [401, 403, 409, 413, 429, 500, 503, 504])
async def test_errors_of_every_code_are_answered_as_a_status(whole: Whole, code: int) -> None:
    await whole.sim.faults.inject(kinds.Errors(code=code, retry_after=7))  # type: ignore[arg-type]
    answer = await fetch(whole.admin, "/api/v1/nodes")
    assert answer.status == code
    status = msgspec.json.decode(answer.body)
    assert (status["kind"], status["code"]) == ("Status", code)
    assert answer.headers["Retry-After"] == "7"
    await whole.sim.faults.heal()
    assert (await fetch(whole.admin, "/api/v1/nodes")).status == 200


async def test_a_share_of_the_requests_fails(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Errors(percent=50))
    codes = [(await fetch(whole.admin, "/api/v1/nodes")).status for _ in range(40)]
    assert set(codes) == {200, 500}


async def test_a_cluster_that_is_read_only_answers_reads(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.ReadOnly())
    path = "/api/v1/namespaces/default/configmaps"
    refused = await fetch(whole.admin, path, "POST")
    assert refused.status == 500
    assert refused.headers["Retry-After"] == "1"
    assert (await fetch(whole.admin, path)).status == 200
    await whole.sim.faults.heal()
    await whole.admin.create(CONFIG_MAPS, config_map("one"))


async def test_an_unhealthy_cluster_says_so_on_its_pages_and_works(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Unhealthy())
    assert (await fetch(whole.admin, "/readyz")).status == 500
    assert (await fetch(whole.admin, "/livez")).status == 200
    assert await reaches(whole.admin)
    await whole.sim.faults.inject(kinds.Unhealthy(pages=("/livez", "/healthz"), code=503))
    assert [(await fetch(whole.admin, page)).status for page in ("/livez", "/healthz")] == [503, 503]
    await whole.sim.faults.heal()
    pages = ("/readyz", "/livez", "/healthz")
    assert [(await fetch(whole.admin, page)).status for page in pages] == [200, 200, 200]


async def listed(client: Client, group_version: str) -> set[str]:
    try:
        found = await client.raw("GET", f"/apis/{group_version}")
    except ApiError:
        return set()
    return {resource["name"] for resource in found["resources"]}


async def test_a_kind_that_is_unavailable_is_neither_listed_nor_served(whole: Whole) -> None:
    await whole.deploy(1)
    await whole.sim.faults.inject(kinds.Unavailable(what=("deployments.apps",)))
    names = await listed(whole.admin, "apps/v1")
    assert "deployments" not in names
    assert "deployments/scale" not in names
    assert "statefulsets" in names
    gone = await fetch(whole.admin, "/apis/apps/v1/namespaces/default/deployments/web")
    assert gone.status == 404
    assert msgspec.json.decode(gone.body)["message"] == "the server could not find the requested resource"
    inside = whole.sim.server.client()
    await inside.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 2}})
    await eventually(lambda: whole.ready() == 2)  # the cluster's own parts are not concerned
    await whole.sim.faults.heal()
    assert "deployments" in await listed(whole.admin, "apps/v1")
    assert (await whole.admin.get(DEPLOYMENTS, "web", "default"))["spec"]["replicas"] == 2


async def test_a_whole_group_version_may_be_unavailable(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Unavailable(what=("batch/v1",)))
    groups = {group["name"] for group in (await whole.admin.raw("GET", "/apis"))["groups"]}
    assert "batch" not in groups
    assert not await listed(whole.admin, "batch/v1")
    assert (await fetch(whole.admin, "/apis/batch/v1/namespaces/default/jobs")).status == 404
    await whole.sim.faults.heal()
    assert "jobs" in await listed(whole.admin, "batch/v1")


# --- watches


class Followed:
    """ConfigMaps as an informer over HTTPS knows them."""

    def __init__(self, client: Client) -> None:
        self._informer = Informer(client, CONFIG_MAPS, "default")

    async def __aenter__(self) -> Followed:
        self._informer.start()
        await self._informer.wait_synced()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._informer.stop()

    def has(self, name: str) -> bool:
        return self._informer.get(Key("default", name)) is not None

    async def sees(self, name: str) -> None:
        await eventually(lambda: self.has(name), show=lambda: self._informer.list())


@pytest.mark.parametrize("how", ["cut", "stall", "expire"])
async def test_an_informer_converges_after_its_watches_were_broken(whole: Whole, how: Any) -> None:
    client = whole.client()
    async with Followed(client) as followed:
        await whole.admin.create(CONFIG_MAPS, config_map("before"))
        await followed.sees("before")
        await whole.sim.faults.inject(kinds.Watches(how=how))
        await whole.admin.create(CONFIG_MAPS, config_map("meanwhile"))
        await whole.admin.delete(CONFIG_MAPS, "before", "default")
        await whole.sim.faults.heal()
        await whole.admin.create(CONFIG_MAPS, config_map("after"))
        await followed.sees("after")
        assert followed.has("meanwhile")
        assert not followed.has("before")


async def test_a_stalled_watch_says_nothing_while_others_work(whole: Whole) -> None:
    async with Followed(whole.client(user_agent="deaf")) as deaf, Followed(whole.client()) as other:
        await whole.sim.faults.inject(kinds.Watches(how="stall", agents="^deaf/"))
        await whole.admin.create(CONFIG_MAPS, config_map("fresh"))
        await other.sees("fresh")
        assert not deaf.has("fresh")
        await whole.sim.faults.heal()
        await deaf.sees("fresh")


async def test_a_watch_that_expires_ends_with_gone(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Watches(how="expire"))
    with pytest.raises(ApiError) as caught:
        async for _ in await whole.admin.watch(CONFIG_MAPS, "default", resource_version="1"):
            pass
    assert caught.value.http_code == 410


# --- nodes


async def jump(whole: Whole, seconds: float) -> None:
    await whole.sim.faults.inject(kinds.Clock(skip=seconds))


def taints(whole: Whole, node: str) -> set[tuple[str, str]]:
    return {(taint["key"], taint["effect"]) for taint in whole.node(node)["spec"].get("taints") or ()}


UNREACHABLE = "node.kubernetes.io/unreachable"


async def test_a_lost_node_is_noticed_tainted_and_emptied_and_comes_back(whole: Whole) -> None:
    await whole.deploy(4)
    lost = "small-node-1"
    there = {pod["metadata"]["name"] for pod in whole.pods() if pod["spec"]["nodeName"] == lost}
    assert there
    await whole.sim.faults.inject(kinds.NodeLost(nodes=(lost,)))
    assert condition(whole.node(lost), "Ready") == "True"  # nobody knows yet
    await jump(whole, 55)
    await eventually(lambda: condition(whole.node(lost), "Ready") == "Unknown")
    await eventually(lambda: {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")} <= taints(whole, lost))
    assert there <= {pod["metadata"]["name"] for pod in whole.pods()}
    await jump(whole, 310)
    await eventually(lambda: whole.ready() == 4 and len(_elsewhere(whole, lost)) == 4, show=whole.states)
    stuck = [pod for pod in whole.pods() if pod["metadata"]["name"] in there]
    assert all(pod["metadata"].get("deletionTimestamp") for pod in stuck)
    await whole.sim.faults.heal("node")
    await eventually(lambda: condition(whole.node(lost), "Ready") == "True")
    await eventually(lambda: not taints(whole, lost))
    await eventually(lambda: len(whole.pods()) == 4, show=whole.states)  # its kubelet has let go of the old ones


def _elsewhere(whole: Whole, node: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in whole.pods() if pod["spec"].get("nodeName") not in (None, node)]


async def test_pods_that_tolerate_for_a_while_are_evicted_after_it_on_a_fast_clock(whole: Whole) -> None:
    toleration = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    await whole.deploy(2, tolerations=[toleration])
    await whole.sim.faults.inject(kinds.NodeLost(nodes=("small-node-1",)))
    await whole.sim.faults.inject(kinds.Clock(rate=100))
    await eventually(lambda: len(_elsewhere(whole, "small-node-1")) == 2 and whole.ready() == 2, show=whole.states)


async def test_a_node_that_comes_back_in_time_keeps_its_pods(whole: Whole) -> None:
    await whole.deploy(4)
    before = sorted(pod["metadata"]["uid"] for pod in whole.pods())
    await whole.sim.faults.inject(kinds.NodeLost(nodes=("small-node-1",)))
    await jump(whole, 55)
    await eventually(lambda: condition(whole.node("small-node-1"), "Ready") == "Unknown")
    await eventually(lambda: whole.ready() == 2)
    await whole.sim.faults.heal("node")
    await eventually(lambda: whole.ready() == 4, show=whole.states)
    assert sorted(pod["metadata"]["uid"] for pod in whole.pods()) == before
    assert all(
        container["restartCount"] == 0 for pod in whole.pods() for container in pod["status"]["containerStatuses"]
    )


async def test_a_node_that_two_faults_have_works_only_after_both_are_healed(whole: Whole) -> None:
    heartbeats = whole.sim.heartbeats
    await whole.sim.faults.inject(kinds.NodeLost(nodes=("small-node-1",)), name="one")
    await whole.sim.faults.inject(kinds.NodeLost(pool="node"), name="pool")
    assert heartbeats.failed("small-node-1")
    assert heartbeats.failed("small-node-2")
    await whole.sim.faults.heal("pool")
    assert heartbeats.failed("small-node-1")
    assert not heartbeats.failed("small-node-2")
    await whole.sim.faults.heal("one")
    assert not heartbeats.failed("small-node-1")


@pytest.mark.parametrize(
    ("kind", "key"),
    [("MemoryPressure", "memory-pressure"), ("DiskPressure", "disk-pressure"), ("PIDPressure", "pid-pressure")],
)
async def test_a_node_under_pressure_takes_no_more_pods(whole: Whole, kind: Any, key: str) -> None:
    await whole.sim.faults.inject(kinds.Pressure(nodes=("small-node-1",), condition=kind))
    taint = (f"node.kubernetes.io/{key}", "NoSchedule")
    await eventually(lambda: taint in taints(whole, "small-node-1"))
    assert condition(whole.node("small-node-1"), kind) == "True"
    await whole.deploy(2)
    assert len(_elsewhere(whole, "small-node-1")) == 2
    await whole.sim.faults.heal()
    await eventually(lambda: not taints(whole, "small-node-1"))
    assert condition(whole.node("small-node-1"), kind) == "False"


# --- pods


async def test_images_that_cannot_be_pulled_keep_pods_waiting_until_they_can(whole: Whole) -> None:
    rule = Rule(Outcome("image-pull-error"), image="nginx")
    await whole.sim.faults.inject(kinds.Pods(rule=rule), name="registry")
    await whole.admin.create(DEPLOYMENTS, deployment("web", 2))
    await eventually(lambda: whole.states() == ["ErrImagePull"] * 2, show=whole.states)
    await jump(whole, 2)
    await eventually(lambda: whole.states() == ["ImagePullBackOff"] * 2, show=whole.states)
    assert whole.ready() == 0
    await whole.sim.faults.heal("registry")
    await eventually(lambda: whole.ready() == 2, show=whole.states)


async def test_pods_that_crash_are_restarted_ever_later_and_recover(whole: Whole) -> None:
    await whole.deploy(1)
    await whole.sim.faults.inject(kinds.Pods(rule=Rule(Outcome("crash-loop"), labels={"app": "web"})), name="bug")

    def container() -> dict[str, Any]:
        [pod] = whole.pods()
        found: dict[str, Any] = pod["status"]["containerStatuses"][0]
        return found

    async def backing_off() -> bool:
        await jump(whole, 0.5)  # moved by the test, time cannot run past the state that it looks for
        return container()["restartCount"] == 3 and whole.states() == ["CrashLoopBackOff"]

    async def recovered() -> bool:
        await jump(whole, 0.5)
        return whole.ready() == 1

    await eventually(backing_off, show=container)
    assert container()["state"]["waiting"]["message"].startswith("back-off 40s restarting failed container=main")
    assert container()["lastState"]["terminated"]["exitCode"] == 1
    assert whole.ready() == 0
    await whole.sim.faults.heal("bug")
    await eventually(recovered, show=whole.states)


# --- parts of the cluster


async def test_a_paused_controller_catches_up_when_it_goes_on(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Paused(component="deployment"))
    await whole.admin.create(DEPLOYMENTS, deployment("web", 2))
    await asyncio.sleep(A_MOMENT)
    assert not whole.pods()
    await whole.sim.faults.heal()
    await eventually(lambda: whole.ready() == 2)


async def test_without_a_scheduler_pods_stay_pending(whole: Whole) -> None:
    await whole.deploy(2)
    await whole.sim.faults.inject(kinds.Paused(component="scheduler"))
    await whole.admin.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 4}})
    await eventually(lambda: whole.states() == ["Pending", "Pending", "Running", "Running"], show=whole.states)
    await whole.admin.delete(
        PODS, next(p for p in whole.pods() if p["spec"].get("nodeName"))["metadata"]["name"], "default"
    )
    await eventually(lambda: whole.states() == ["Pending"] * 3 + ["Running"], show=whole.states)
    await whole.sim.faults.heal()
    await eventually(lambda: whole.ready() == 4, show=whole.states)


async def test_without_kubelets_pods_are_placed_and_do_not_start(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Paused(component="kubelet"))
    await whole.admin.create(DEPLOYMENTS, deployment("web", 2))
    await eventually(lambda: len([p for p in whole.pods() if p["spec"].get("nodeName")]) == 2)
    assert whole.states() == ["Pending", "Pending"]
    await whole.sim.faults.heal()
    await eventually(lambda: whole.ready() == 2)


async def test_a_component_that_two_faults_pause_goes_on_after_both(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Paused(component="deployment"), name="one")
    await whole.sim.faults.inject(kinds.Paused(component="deployment"), name="two")
    await whole.sim.faults.heal("one")
    await whole.admin.create(DEPLOYMENTS, deployment("web", 1))
    await asyncio.sleep(A_MOMENT)
    assert not whole.pods()
    await whole.sim.faults.heal("two")
    await eventually(lambda: whole.ready() == 1)


async def test_a_skewed_clock_shows_in_what_is_written_and_is_set_right_again(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Clock(skip=-7200), name="behind")
    await whole.sim.faults.inject(kinds.Clock(skip=3600), name="ahead")
    assert whole.sim.clock.now() == pytest.approx(time.time() - 3600, abs=1)
    await whole.sim.faults.heal("ahead")
    assert whole.sim.clock.now() == pytest.approx(time.time() - 7200, abs=1)
    await whole.sim.faults.heal()
    assert whole.sim.clock.now() == pytest.approx(time.time(), abs=1)


# --- faults by name and by time


async def test_a_timed_fault_heals_by_itself(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Down(), seconds=0.05)
    await eventually_reaches(whole.admin, True)
    await eventually(lambda: not whole.sim.faults.active)


async def test_the_end_of_a_healed_fault_does_not_end_another_of_its_name(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Unhealthy(), name="sick", seconds=0.05)
    await whole.sim.faults.inject(kinds.Unhealthy(), name="sick")
    await whole.sim.faults.inject(kinds.Slow(seconds=0), seconds=0.1)
    await eventually(lambda: list(whole.sim.faults.active) == ["sick"])
    assert (await fetch(whole.admin, "/readyz")).status == 500


async def test_faults_have_names_of_their_own_and_are_healed_by_them(whole: Whole) -> None:
    faults = whole.sim.faults
    assert await faults.inject(kinds.Slow(seconds=0)) == "slow"
    assert await faults.inject(kinds.Slow(seconds=0)) == "slow-2"
    assert await faults.inject(kinds.Unhealthy(), name="sick") == "sick"
    assert await faults.heal("slow") == ["slow"]
    assert list(faults.active) == ["slow-2", "sick"]
    assert await faults.heal() == ["slow-2", "sick"]
    assert await faults.heal() == []


async def test_two_faults_that_take_it_down_must_both_be_healed(whole: Whole) -> None:
    await whole.sim.faults.inject(kinds.Down(), name="power")
    await whole.sim.faults.inject(kinds.Down(), name="network")
    await whole.sim.faults.heal("power")
    assert not await reaches(whole.admin)
    await whole.sim.faults.heal("network")
    assert await reaches(whole.admin)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (kinds.Paused(component="nonsense"), UnknownComponent),
        (kinds.NodeLost(nodes=("nonsense",)), UnknownNode),
        (kinds.Pressure(nodes=("nonsense",)), UnknownNode),
    ],
)
async def test_what_does_not_exist_cannot_fail(whole: Whole, fault: kinds.Fault, error: type[Exception]) -> None:
    with pytest.raises(error, match="nonsense"):
        await whole.sim.faults.inject(fault)
    assert not whole.sim.faults.active
    with pytest.raises(UnknownFault):
        await whole.sim.faults.heal("nonsense")


@pytest.mark.parametrize(
    "description",
    [
        {"type": "nonsense"},
        {"type": "slow", "seconds": -1},
        {"type": "slow", "percent": 101},
        {"type": "slow", "users": "("},
        {"type": "flap", "up": 0},
        {"type": "clock", "rate": 0},
        {"type": "errors", "code": 418},
        {"type": "down", "nonsense": 1},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(description: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        kinds.read(description)


async def test_a_cluster_with_requests_that_hang_stops_at_once(tmp_path: Path) -> None:
    async with whole_cluster(tmp_path) as whole:
        await whole.sim.faults.inject(kinds.BlackHole())
        waiting = await hangs(whole.admin.get(NODES, "small-node-1"))
        began = time.monotonic()
        await whole.sim.stop()
        assert time.monotonic() - began < LIMIT
        with suppress(ConnectionFailed, ApiError):
            await waiting


@pytest.mark.parametrize(
    "fault",
    [
        kinds.Down(),
        kinds.Flap(up=0.01, down=0.01),
        kinds.Paused(component="scheduler"),
        kinds.Paused(component="kubelet"),
        kinds.NodeLost(pool="node"),
        kinds.Clock(rate=1000),
    ],
    ids=lambda fault: type(fault).__name__,
)
async def test_a_cluster_with_a_fault_can_be_stopped_and_starts_without_it(tmp_path: Path, fault: kinds.Fault) -> None:
    async with whole_cluster(tmp_path, in_memory=False) as whole:
        await whole.deploy(2)
        await whole.sim.faults.inject(fault)
    async with whole_cluster(tmp_path, in_memory=False) as whole:
        assert await reaches(whole.admin)
        await whole.admin.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 3}})
        await eventually(lambda: whole.ready() == 3, show=whole.states)


async def test_leases_show_live_nodes_renewed_and_the_lost_one_not(whole: Whole) -> None:
    leases = GVR("coordination.k8s.io", "v1", "leases")

    async def ages() -> dict[str, float]:
        found = (await whole.admin.list(leases, "kube-node-lease"))["items"]
        now = whole.sim.clock.now()
        return {lease["metadata"]["name"]: now - parse_time(lease["spec"]["renewTime"]) for lease in found}

    await whole.sim.faults.inject(kinds.NodeLost(nodes=("small-node-1",)))
    await jump(whole, 100)
    seen = await ages()
    assert seen["small-node-2"] <= 11
    assert seen["small-node-1"] >= 100
    await whole.sim.faults.heal("node")
    assert (await ages())["small-node-1"] <= 11


async def test_nobody_gets_into_the_pods_of_a_lost_node(whole: Whole) -> None:
    await whole.deploy(1)
    [pod] = whole.pods()
    logs = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/log"
    assert (await fetch(whole.admin, logs)).status == 200
    await whole.sim.faults.inject(kinds.NodeLost(pool="node"))
    lost = await fetch(whole.admin, logs)
    assert lost.status == 500
    assert b"no route to host" in lost.body
    await whole.sim.faults.heal()
    assert (await fetch(whole.admin, logs)).status == 200
