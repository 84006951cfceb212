"""What the commands of containers write is there for the containers that share the volume, and gone with its owner."""

from __future__ import annotations

from pathlib import Path

from karmada.kube.objects.gvrs import CONFIG_MAPS, PODS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.kubelet.container_environment import describe
from karmada.kube.sim.kubelet.shell import execute
from tests.kube.sim.node_parts import NODE, Parts, node_parts
from tests.kube.sim.test_shell import Ends

EMPTY = [{"name": "data", "emptyDir": {}}]
HOST = [{"name": "data", "hostPath": {"path": "/var/shared"}}]
FAIL_ONCE = "if [[ -r /data/foo ]] ; then exit 0 ; else touch /data/foo ; exit 1 ; fi"


def script(text: str, name: str = "c", **more: object) -> Obj:
    mounts = [{"name": "data", "mountPath": "/data"}]
    return {"name": name, "image": "busybox", "command": ["sh", "-c", text], "volumeMounts": mounts, **more}


async def ended(parts: Parts, name: str = "p") -> tuple[str, int, int]:
    """Phase, exit code and restarts of the main container."""
    await parts.pass_time(15, 1.0)
    pod = parts.pod(name)
    assert pod is not None
    [status] = pod["status"]["containerStatuses"]
    return pod["status"]["phase"], status["state"]["terminated"]["exitCode"], status["restartCount"]


async def inside(parts: Parts, command: str, name: str = "p") -> str:
    pod = parts.pod(name)
    assert pod is not None
    context = parts.cluster.context
    machine = await describe(context.client(), pod, pod["spec"]["containers"][0], context.volumes)
    ends = Ends()
    await execute(machine, ["sh", "-c", command], ends)
    return ends.stdout.decode()


async def test_a_container_that_fails_once_succeeds_after_its_restart(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        await parts.create("p", script(FAIL_ONCE), volumes=EMPTY, restartPolicy="OnFailure")
        assert await ended(parts) == ("Succeeded", 0, 1)


async def test_the_containers_of_a_pod_share_its_empty_directories(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        init = script("echo 7 > /data/code", "init")
        await parts.create(
            "p", script("exit $(cat /data/code)"), initContainers=[init], volumes=EMPTY, restartPolicy="Never"
        )
        assert await ended(parts) == ("Failed", 7, 0)


async def test_a_pod_has_its_own_empty_directories_and_shares_those_of_its_node(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        for name, volumes, code in (("a", EMPTY, 1), ("b", EMPTY, 1), ("c", HOST, 1), ("d", HOST, 0)):
            await parts.create(name, script(FAIL_ONCE), volumes=volumes, restartPolicy="Never")
            assert (await ended(parts, name))[1] == code


async def test_a_command_reads_its_environment_and_its_config_maps(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"code": "4"}}
        await parts.cluster.client.create(CONFIG_MAPS, data, "default")
        volumes = [{"name": "data", "configMap": {"name": "c"}}]
        env = [{"name": "MORE", "value": "2"}]
        command = script('exit $(expr $(cat /data/code) + "$MORE")', env=env)
        await parts.create("p", command, volumes=volumes, restartPolicy="Never")
        assert (await ended(parts))[1] == 6
        await parts.create("q", script("exit $(MORE)", env=env), volumes=EMPTY, restartPolicy="Never")
        assert (await ended(parts, "q"))[1] == 2


async def test_exec_finds_what_the_container_wrote_until_the_pod_is_gone(tmp_path: Path) -> None:
    async with node_parts(tmp_path) as parts:
        waiting = script("echo hello > /data/f; touch /tmp/healthy; sleep 1000")
        made = await parts.create("p", waiting, volumes=EMPTY, restartPolicy="Never")
        await parts.until_phase("Running")
        assert await inside(parts, "cat /data/f; ls /tmp; echo more >> /data/f") == "hello\nhealthy\n"
        assert await inside(parts, "wc -l < /data/f") == "2\n"
        await parts.cluster.client.delete(PODS, "p", "default", grace_period=0)
        await parts.until_gone()
        await parts.pass_time(1)
        volumes = parts.cluster.context.volumes
        assert made["metadata"]["uid"] not in volumes._of_pods
        assert NODE not in volumes._of_nodes
