"""Pods of a known image run as processes: they are started, reached, probed, restarted, refreshed and ended."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS, EVENTS, NODES, PODS, SECRETS, SERVICES, SLICES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.behaviours import Rule, parse_outcome
from karmada.kube.sim.faults.kinds import Pods
from karmada.kube.sim.kubelet.channels import Channels, Wanted
from karmada.kube.sim.processes.loopback import claim_any, in_block
from tests.kube.sim.processes.process_cluster import SMALL, fetch, fetched, log_of, pod, process_cluster, service
from tests.kube.sim.whole_cluster import Whole
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.objects import kube_object


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Whole]:
    async with process_cluster(tmp_path) as whole:
        yield whole


def found(cluster: Whole, name: str) -> Obj:
    return cluster.sim.context.informers.of(PODS).get(Key("default", name)) or {}


def status(cluster: Whole, name: str) -> Obj:
    return ((found(cluster, name).get("status") or {}).get("containerStatuses") or [{}])[0]


def pids(cluster: Whole) -> list[int]:
    assert cluster.sim.processes is not None
    return [int(process["pid"]) for process in cluster.sim.processes.runtime.processes()]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def ready(cluster: Whole, name: str) -> str:
    """The pod's address, once it is ready."""
    await eventually(lambda: status(cluster, name).get("ready"), show=lambda: found(cluster, name).get("status"))
    return str(found(cluster, name)["status"]["podIP"])


async def events(cluster: Whole, name: str) -> list[str]:
    for recorder in cluster.sim.context.recorders.values():
        await recorder.flush()
    listed = (await cluster.admin.list_all(EVENTS, "default")).items
    return [event["message"] for event in listed if event["involvedObject"]["name"] == name]


async def test_a_deployment_of_a_known_image_is_reached_through_its_service(cluster: Whole) -> None:
    await cluster.admin.create(SERVICES, service("web"))
    await cluster.deploy(2, containers=[{"name": "main", "image": "known/server:1"}])
    assert len(set(pids(cluster))) == 2
    address = (await cluster.admin.get(SERVICES, "web", "default"))["spec"]["clusterIP"]
    assert address.startswith("127.")

    async def both() -> bool:
        return len({await fetched(address, 80) for _ in range(4)}) == 2

    await eventually(both)


async def test_a_program_that_cannot_look_up_names_is_started_when_its_names_have_addresses(cluster: Whole) -> None:
    peer = {"image": "known/nameless", "args": ["first.peers.default.svc.cluster.local"]}
    await cluster.admin.create(PODS, pod("second", container=peer))
    await eventually(lambda: found(cluster, "second").get("status", {}).get("podIP"))
    assert not pids(cluster)
    await cluster.admin.create(SERVICES, service("peers", selector={"app": "first"}, clusterIP="None"))
    await cluster.admin.create(PODS, pod("first", hostname="first", subdomain="peers"))
    address = await ready(cluster, "first")
    assert address in await fetched(await ready(cluster, "second"), 8080, "/args")


async def test_a_service_is_reached_at_its_node_ports_and_its_load_balancer(cluster: Whole) -> None:
    await cluster.admin.create(SERVICES, service("web", type="LoadBalancer"))
    await cluster.deploy(1, containers=[{"name": "main", "image": "known/server:1"}])

    async def balanced() -> Obj | None:
        found = await cluster.admin.get(SERVICES, "web", "default")
        return found if (found.get("status") or {}).get("loadBalancer") else None

    web = await eventually(balanced)
    [ingress] = web["status"]["loadBalancer"]["ingress"]
    assert (await fetched(ingress["ip"], 80)).startswith("hello from web-")
    node = cluster.node("processes-node-2")["status"]["addresses"][0]["address"]
    assert (await fetched(node, web["spec"]["ports"][0]["nodePort"])).startswith("hello from web-")


async def test_connections_to_a_service_without_endpoints_are_refused(cluster: Whole) -> None:
    await cluster.admin.create(SERVICES, service("web"))
    await cluster.deploy(1, containers=[{"name": "main", "image": "known/server:1"}])
    address = (await cluster.admin.get(SERVICES, "web", "default"))["spec"]["clusterIP"]
    await fetched(address, 80)
    await cluster.admin.patch(DEPLOYMENTS, "web", "default", {"spec": {"replicas": 0}}, type="merge")

    async def refused() -> bool:
        try:
            await fetch(address, 80)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False

    await eventually(refused)


async def test_pods_of_other_images_stay_simulated(cluster: Whole) -> None:
    await cluster.admin.create(SERVICES, service("web"))
    await cluster.deploy(1)
    assert pids(cluster) == []
    address = (await cluster.admin.get(SERVICES, "web", "default"))["spec"]["clusterIP"]
    assert (await fetched(address, 80)).startswith("ok from web-")


async def test_the_environment_and_the_files_are_those_of_the_pod(cluster: Whole) -> None:
    await cluster.admin.create(CONFIG_MAPS, {"metadata": {"name": "c", "namespace": "default"}, "data": {"a": "1"}})
    await cluster.admin.create(
        SECRETS, {"metadata": {"name": "s", "namespace": "default"}, "stringData": {"key": "secret"}}
    )
    container: dict[str, Any] = {
        "command": ["/bin/server", "--port", "$(PORT)"],
        "args": ["--config=/etc/config/a,/etc/config/b", "/etc/other"],
        "env": [
            {"name": "PORT", "value": "8081"},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
            {"name": "WHERE", "value": "/etc/config/a"},
        ],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
    }
    volumes = [{"name": "config", "configMap": {"name": "c"}}]
    await cluster.admin.create(PODS, pod("p", container=container, volumes=volumes))
    address = await ready(cluster, "p")

    async def get(path: str) -> str:
        return await fetched(address, 8081, path)

    root = await get("/env/SIM_POD_ROOT")
    assert await get("/args") == f"--port 8081 --config={root}/etc/config/a,{root}/etc/config/b /etc/other"
    assert await get("/env/IP") == address
    assert await get("/env/SECRET") == "secret"
    assert await get("/env/WHERE") == f"{root}/etc/config/a"
    assert await get(f"/file{root}/etc/config/a") == "1"
    assert (Path(root) / "etc/config/a").stat().st_mode & 0o777 == 0o600
    token = await get(f"/file{root}/var/run/secrets/kubernetes.io/serviceaccount/token")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    reviewed = await cluster.admin.create(GVR("authentication.k8s.io", "v1", "tokenreviews"), review, "")
    assert reviewed["status"]["user"]["username"] == "system:serviceaccount:default:default"

    await cluster.admin.patch(CONFIG_MAPS, "c", "default", {"data": {"a": "2"}}, type="merge")

    async def refreshed() -> bool:
        return await get(f"/file{root}/etc/config/a") == "2"

    await eventually(refreshed)


async def listening(cluster: Whole, name: str) -> None:
    async def said() -> bool:
        return "listening" in await log_of(cluster, name)

    await eventually(said)


async def test_a_container_that_fails_is_restarted_with_a_growing_pause_and_keeps_its_last_log(cluster: Whole) -> None:
    policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    await cluster.admin.create(PODS, pod("p", container={"args": ["--fail"], **policy}))
    waiting = await eventually(lambda: (status(cluster, "p").get("state") or {}).get("waiting"))
    assert waiting["reason"] == "CrashLoopBackOff"
    assert status(cluster, "p")["restartCount"] == 1
    ended = status(cluster, "p")["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "nothing works\n")
    assert await log_of(cluster, "p", previous="true") == "nothing works\n"
    assert pids(cluster) == []


async def test_a_command_that_is_not_in_the_table_is_not_run(cluster: Whole) -> None:
    await cluster.admin.create(PODS, pod("p", container={"command": ["/bin/sh", "-c", "id"]}, restartPolicy="Never"))
    ended = await eventually(lambda: (status(cluster, "p").get("state") or {}).get("terminated"))
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert 'exec: "id": containers of known/server:1 run as processes' in ended["message"]


async def test_readiness_and_liveness_are_really_probed(cluster: Whole) -> None:
    probe = {
        "httpGet": {"path": "/health", "port": 8080},
        "periodSeconds": 1,
        "timeoutSeconds": 10,
        "failureThreshold": 1,
    }
    container = {"readinessProbe": probe, "livenessProbe": {**probe, "failureThreshold": 2}}
    await cluster.admin.create(PODS, pod("p", container=container))
    address = await ready(cluster, "p")
    await fetched(address, 8080, "/sicken")
    await eventually(lambda: not status(cluster, "p")["ready"])
    await eventually(lambda: status(cluster, "p")["restartCount"] == 1)
    emitted = await events(cluster, "p")
    assert "Readiness probe failed: HTTP probe failed with statuscode: 500" in emitted
    assert "Container main failed liveness probe, will be restarted" in emitted
    await ready(cluster, "p")


async def test_a_deleted_pod_is_terminated_and_its_folder_removed(cluster: Whole, tmp_path: Path) -> None:
    await cluster.admin.create(PODS, pod("p"))
    await ready(cluster, "p")
    await listening(cluster, "p")
    [pid] = pids(cluster)
    [folder] = (tmp_path / "pods").glob("*")
    await cluster.admin.delete(PODS, "p", "default")
    await eventually(lambda: not found(cluster, "p") and not alive(pid))
    await eventually(lambda: not folder.exists())


async def test_lifecycle_hooks_are_run_after_the_start_and_before_the_end(cluster: Whole, tmp_path: Path) -> None:
    def hook(name: str) -> Obj:
        script = "import sys, pathlib; pathlib.Path(sys.argv[1]).touch()"
        return {"exec": {"command": ["python", "-c", script, str(tmp_path / name)]}}

    container = {"lifecycle": {"postStart": hook("started"), "preStop": hook("stopping")}}
    await cluster.admin.create(PODS, pod("p", container=container, terminationGracePeriodSeconds=30))
    await ready(cluster, "p")
    await eventually((tmp_path / "started").exists)
    await cluster.admin.delete(PODS, "p", "default")
    await eventually(lambda: not found(cluster, "p"))
    assert (tmp_path / "stopping").exists()


async def test_a_hook_that_fails_after_the_start_ends_the_container(cluster: Whole) -> None:
    container = {"lifecycle": {"postStart": {"exec": {"command": ["ls"]}}}}
    await cluster.admin.create(PODS, pod("p", container=container, restartPolicy="Never"))
    await eventually(lambda: (status(cluster, "p").get("state") or {}).get("terminated"))
    assert any(message.startswith("PostStartHook failed: exec: ") for message in await events(cluster, "p"))


async def test_a_process_that_ignores_sigterm_is_killed_after_its_grace_period(cluster: Whole) -> None:
    await cluster.admin.create(PODS, pod("p", container={"args": ["--stubborn"]}, terminationGracePeriodSeconds=1))
    await ready(cluster, "p")
    await listening(cluster, "p")
    [pid] = pids(cluster)
    await cluster.admin.delete(PODS, "p", "default")
    await eventually(lambda: not found(cluster, "p") and not alive(pid))


async def test_the_processes_of_a_deleted_node_are_killed(cluster: Whole) -> None:
    await cluster.admin.create(PODS, pod("p", nodeName="processes-node-1"))
    await ready(cluster, "p")
    [pid] = pids(cluster)
    await cluster.sim.server.client().delete(NODES, "processes-node-1")
    await eventually(lambda: not alive(pid))


async def test_init_containers_run_to_their_end_before_the_others(cluster: Whole) -> None:
    init = {"name": "first", "image": "known/server", "command": ["python", "-c", "print('made ready')"]}
    await cluster.admin.create(PODS, pod("p", initContainers=[init]))
    await ready(cluster, "p")
    assert await log_of(cluster, "p", container="first") == "made ready\n"
    [first] = found(cluster, "p")["status"]["initContainerStatuses"]
    assert first["state"]["terminated"]["exitCode"] == 0


async def test_a_failed_startup_probe_restarts_the_container_and_others_wait_for_it(cluster: Whole) -> None:
    probe = {"tcpSocket": {"port": "none"}, "periodSeconds": 1, "failureThreshold": 1}
    ready_probe = {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 1}
    await cluster.admin.create(PODS, pod("p", container={"startupProbe": probe, "readinessProbe": ready_probe}))
    await eventually(lambda: status(cluster, "p").get("restartCount") == 1)
    assert "Container main failed startup probe, will be restarted" in await events(cluster, "p")
    assert not any(message.startswith("Readiness") for message in await events(cluster, "p"))
    ended = status(cluster, "p")["lastState"]["terminated"]
    assert ended["exitCode"] in (0, 143), "ended by SIGTERM, before or after it could handle it"


@cases((["sh", "-c", "python -c 'exit(0)'"], True), (["python", "-c", "exit(1)"], False), (["ls"], False))
async def test_exec_probes_run_known_commands(command: list[str], passes: bool, cluster: Whole) -> None:
    probe = {"exec": {"command": command}, "periodSeconds": 1, "timeoutSeconds": 10, "failureThreshold": 1}
    await cluster.admin.create(PODS, pod("p", container={"readinessProbe": probe}))
    if passes:
        await ready(cluster, "p")
        return

    async def failed() -> bool:
        return any(message.startswith("Readiness probe failed: ") for message in await events(cluster, "p"))

    await eventually(failed)
    assert not status(cluster, "p")["ready"]


async def test_exec_runs_known_commands_with_a_terminal_or_without(cluster: Whole) -> None:
    await cluster.admin.create(PODS, pod("p"))
    await ready(cluster, "p")
    assert cluster.sim.processes is not None
    runtime, running = cluster.sim.processes.runtime, found(cluster, "p")
    [container] = running["spec"]["containers"]

    async def executed(command: list[str], *, tty: bool) -> tuple[int, bytes]:
        seen: list[bytes] = []

        async def send(_channel: int, data: bytes) -> None:
            seen.append(data)

        streams = Channels(Wanted(stdout=True, stderr=True, tty=tty), "v5.channel.k8s.io", send)
        return await runtime.exec(running, container, command, streams), b"".join(seen)

    script = "import os; print(os.isatty(1), os.environ.get('TERM')); exit(3)"
    assert await executed(["python", "-c", script], tty=True) == (3, b"True xterm\r\n")
    assert await executed(["python", "-c", script], tty=False) == (3, b"False None\n")
    for tty in (True, False):
        code, output = await executed(["ls"], tty=tty)
        assert (code, b"which can run only" in output) == (127, True)


async def test_behaviours_apply_to_processes_too(cluster: Whole) -> None:
    wanted = pod("p")
    wanted["metadata"]["annotations"] = {"sim.io/behavior": "never-ready"}
    await cluster.admin.create(PODS, wanted)
    await listening(cluster, "p")
    assert not status(cluster, "p")["ready"]


async def test_a_process_that_shall_crash_is_ended_and_restarted(cluster: Whole) -> None:
    await cluster.admin.create(PODS, pod("p"))
    await ready(cluster, "p")
    [pid] = pids(cluster)
    rule = Rule(outcome=parse_outcome("run-for 0s exit 7"), labels={"app": "p"})
    await cluster.sim.faults.inject(Pods(rule=rule), name="crash")
    await eventually(lambda: not alive(pid))
    await eventually(lambda: (status(cluster, "p").get("lastState") or {}).get("terminated", {}).get("exitCode") == 7)


async def test_a_lost_node_ends_its_processes_and_restarts_them_when_it_is_back(cluster: Whole) -> None:
    await cluster.admin.create(PODS, pod("p", nodeName="processes-node-1"))
    await ready(cluster, "p")
    [pid] = pids(cluster)
    cluster.sim.stop_nodes(["processes-node-1"])
    await eventually(lambda: not alive(pid))
    cluster.sim.resume_nodes(["processes-node-1"])
    await eventually(lambda: pids(cluster) not in ([], [pid]))
    await eventually(lambda: status(cluster, "p")["restartCount"] == 1)


async def test_logs_are_selected_as_kubernetes_does(cluster: Whole) -> None:
    script = "import sys; print('one'); print('two', file=sys.stderr); print('three')"
    await cluster.admin.create(PODS, pod("p", restartPolicy="Never", container={"command": ["python", "-uc", script]}))
    await eventually(lambda: (found(cluster, "p").get("status") or {}).get("phase") == "Succeeded")
    assert sorted((await log_of(cluster, "p")).split()) == ["one", "three", "two"]
    assert await log_of(cluster, "p", stream="Stderr") == "two\n"
    assert len((await log_of(cluster, "p", tailLines="1")).splitlines()) == 1
    assert len(await log_of(cluster, "p", limitBytes="5")) == 5
    time, _, _ = (await log_of(cluster, "p", stream="Stderr", timestamps="true")).partition(" ")
    assert time.endswith("Z")
    assert "previous terminated container" in await log_of(cluster, "p", previous="true")


async def test_a_pod_finds_the_api_server_and_services_by_their_names(cluster: Whole) -> None:
    """With our own client, in the container's environment; the certificate is checked against the name."""
    await cluster.admin.create(SERVICES, service("web"))
    await cluster.deploy(1, containers=[{"name": "main", "image": "known/server:1"}])
    address = (await cluster.admin.get(SERVICES, "web", "default"))["spec"]["clusterIP"]
    await fetched(address, 80)
    await cluster.admin.create(
        PODS, pod("p", restartPolicy="Never", container={"command": ["python", "-c", IN_CLUSTER]})
    )
    await eventually(lambda: (found(cluster, "p").get("status") or {}).get("phase") in ("Succeeded", "Failed"))
    assert (await log_of(cluster, "p")).splitlines() == [
        "account default",
        "by name True",
        "wrong name rejected",
        f"lookup {[(address, 80)]}",
    ]


IN_CLUSTER = """
import asyncio
from dataclasses import replace
from karmada.kube.client.client import Client
from karmada.kube.client.cluster_names import lookup
from karmada.kube.client.incluster import in_cluster_config
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.transport import Call, ConnectionFailed
from karmada.kube.objects.gvk import GVR

async def main():
    inside = replace(in_cluster_config(), timeout=120.0)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    client = Client(HttpTransport(inside))
    done = await client.create(GVR("authentication.k8s.io", "v1", "selfsubjectreviews"), review, "")
    print("account", done["status"]["userInfo"]["username"].split(":")[-1])
    await client.close()
    named = replace(inside, server="https://kubernetes.default.svc.cluster.local")
    transport = HttpTransport(named)
    print("by name", (await transport.answer(Call("GET", "/version"))).status == 200)
    await transport.close()
    wrong = HttpTransport(replace(named, tls_server_name="other.default.svc"))
    try:
        await wrong.answer(Call("GET", "/version"))
    except ConnectionFailed as error:
        print("wrong name", "rejected" if "CERTIFICATE_VERIFY_FAILED" in str(error) else error)
    await wrong.close()
    print("lookup", lookup("web", 80))

asyncio.run(main())
"""


async def test_tokens_are_renewed_before_they_end(cluster: Whole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karmada.kube.sim.processes.pod.token_renewal", lambda _pod: 0.05)
    await cluster.admin.create(PODS, pod("p"))
    await ready(cluster, "p")
    [token] = cluster.sim.folder.glob("pods/*/volumes/kube-api-access-*/token")
    first = token.read_text()
    await eventually(lambda: token.read_text() != first)


async def test_the_files_of_a_pod_that_has_ended_are_removed_and_its_log_is_kept(cluster: Whole) -> None:
    await cluster.admin.create(
        PODS, pod("p", restartPolicy="Never", container={"command": ["python", "-c", "print('done')"]})
    )
    await eventually(lambda: (found(cluster, "p").get("status") or {}).get("phase") == "Succeeded")
    assert await log_of(cluster, "p") == "done\n"
    await eventually(lambda: not list(cluster.sim.folder.glob("pods/*/volumes/*")))


async def test_containers_of_a_cluster_that_starts_again_are_restarted(tmp_path: Path) -> None:
    block = claim_any(str(tmp_path))
    profile = in_block(SMALL, block.number)
    async with process_cluster(tmp_path, profile, in_memory=False) as cluster:
        await cluster.admin.create(PODS, pod("p"))
        await ready(cluster, "p")
        await listening(cluster, "p")
        [pid] = pids(cluster)
    assert not alive(pid)
    async with process_cluster(tmp_path, profile, in_memory=False) as cluster:
        await eventually(lambda: status(cluster, "p").get("restartCount") == 1)
        await ready(cluster, "p")
        ended = status(cluster, "p")["lastState"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (255, "Unknown")
        assert "stopping" in await log_of(cluster, "p", previous="true")
    block.release()


async def test_a_service_leads_to_addresses_of_other_clusters(cluster: Whole) -> None:
    """Also when a pod here has the name that the other cluster's pod has there."""
    await cluster.admin.create(PODS, pod("there"))
    address = await ready(cluster, "there")
    await cluster.admin.create(PODS, pod("same", container={"image": "simulated:1"}))
    await ready(cluster, "same")
    far = service("far")
    await cluster.admin.create(SERVICES, {**far, "spec": {"ports": far["spec"]["ports"]}})
    labels = {"kubernetes.io/service-name": "far"}
    target = {"kind": "Pod", "namespace": "default", "name": "same"}
    slices = kube_object("discovery.k8s.io/v1", "EndpointSlice", "other-cluster", "default", labels=labels) | {
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "targetRef": target}],
        "ports": [{"port": 8080}],
    }
    await cluster.admin.create(SLICES, slices)
    reached = (await cluster.admin.get(SERVICES, "far", "default"))["spec"]["clusterIP"]
    assert await fetched(reached, 80) == "hello from there"
