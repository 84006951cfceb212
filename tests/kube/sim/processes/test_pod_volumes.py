"""The files and the environment of a process, for every source that a pod can name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.errors import AlreadyExists
from karmada.kube.objects.gvrs import CLAIMS, CONFIG_MAPS, PODS, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.processes.volumes import references, token_renewal
from tests.kube.sim.processes.process_cluster import log_of, pod, process_cluster
from tests.kube.sim.whole_cluster import Whole
from tests.support.eventually import eventually

SHOW = """
import json, os, sys
from pathlib import Path
shown = {name: os.environ.get(name) for name in sys.argv[1].split(",")}
for path in sys.argv[2:]:
    shown[path[len(os.environ["SIM_POD_ROOT"]):]] = Path(path).read_text()
print(json.dumps(shown))
"""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Whole]:
    async with process_cluster(tmp_path) as whole:
        await whole.admin.create(
            CONFIG_MAPS, {"metadata": {"name": "c", "namespace": "default"}, "data": {"a": "1", "b": "2"}}
        )
        secret = {"metadata": {"name": "s", "namespace": "default"}, "stringData": {"user": "u", "word": "w"}}
        await whole.admin.create(SECRETS, secret)
        yield whole


def files_below(folder: Path) -> list[Path]:
    return list(folder.rglob("file"))


MOUNT = {"name": "host", "mountPath": "/host"}


async def ended(cluster: Whole, wanted: Obj) -> Obj:
    """The pod, once it has ended."""
    await cluster.admin.create(PODS, wanted)
    pods = cluster.sim.context.informers.of(PODS)

    def found() -> Obj | None:
        there = pods.get(Key("default", wanted["metadata"]["name"])) or {}
        return there if (there.get("status") or {}).get("phase") in ("Succeeded", "Failed") else None

    return dict(await eventually(found))


async def shown(cluster: Whole, names: str, paths: list[str], container: Obj, **spec: Any) -> dict[str, str]:
    """What a pod sees of these variables and files."""
    command = ["python", "-c", SHOW, names, *paths]
    wanted = pod("p", restartPolicy="Never", container={"command": command, **container}, **spec)
    found = await ended(cluster, wanted)
    text = await log_of(cluster, "p")
    assert found["status"]["phase"] == "Succeeded", text
    return dict(json.loads(text))


async def test_the_environment_has_values_from_every_source(cluster: Whole) -> None:
    container = {
        "resources": {"limits": {"cpu": "1500m"}},
        "envFrom": [{"configMapRef": {"name": "c"}, "prefix": "C_"}, {"secretRef": {"name": "s"}}],
        "env": [
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "b"}}},
            {"name": "MISSING", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y", "optional": True}}},
            {"name": "BOTH", "value": "$(C_a)-$(KEY)"},
        ],
    }
    found = await shown(cluster, "C_a,user,NODE,CPU,KEY,MISSING,BOTH,SECRET_OF_THE_TEST", [], container)
    assert found["NODE"].startswith("processes-node-")
    del found["NODE"]
    assert found == {
        "C_a": "1", "user": "u", "CPU": "2", "KEY": "2", "MISSING": None, "BOTH": "1-2", "SECRET_OF_THE_TEST": None,
    }  # fmt: skip


async def test_volumes_are_files_below_the_mount_paths(cluster: Whole, tmp_path: Path) -> None:
    host = tmp_path / "shared"
    host.mkdir()
    (host / "file").write_text("of the host")
    volumes: list[Obj] = [
        {"name": "config", "configMap": {"name": "c", "items": [{"key": "a", "path": "deep/a"}]}},
        {"name": "secret", "secret": {"secretName": "s"}},
        {"name": "down", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "host", "hostPath": {"path": str(host)}},
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"secret": {"name": "s", "items": [{"key": "word", "path": "word"}]}},
                    {"configMap": {"name": "c", "items": [{"key": "b", "path": "b"}]}},
                ]
            },
        },
    ]
    mounts = [
        {"name": "config", "mountPath": "/etc/config"},
        {"name": "secret", "mountPath": "/etc/config/secret"},
        {"name": "down", "mountPath": "/down"},
        {"name": "host", "mountPath": "/host"},
        {"name": "all", "mountPath": "/all"},
        {"name": "config", "mountPath": "/one", "subPath": "deep/a"},
    ]
    expected = {
        "/etc/config/deep/a": "1",
        "/etc/config/secret/user": "u",
        "/down/labels": 'app="p"',
        "/host/file": "of the host",
        "/all/word": "w",
        "/all/b": "2",
        "/one": "1",
    }
    found = await shown(cluster, "HOME", list(expected), {"volumeMounts": mounts}, volumes=volumes)
    assert Path(found.pop("HOME")).is_relative_to(tmp_path)
    assert found == expected


async def test_containers_of_a_pod_share_an_empty_folder(cluster: Whole) -> None:
    mount = {"volumeMounts": [{"name": "work", "mountPath": "/work"}]}
    write = "import sys; open(sys.argv[1], 'w').write('made')"
    init = {"name": "first", "image": "known/server", "command": ["python", "-c", write, "/work/file"], **mount}
    volumes = [{"name": "work", "emptyDir": {}}]
    found = await shown(cluster, "HOME", ["/work/file"], mount, initContainers=[init], volumes=volumes)
    assert found["/work/file"] == "made"


async def test_a_claim_keeps_its_files_for_the_next_pod_and_not_for_the_next_claim(cluster: Whole) -> None:
    claim = {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    add = "import sys; file = open(sys.argv[1], 'a+'); file.write('x'); file.seek(0); print(file.read())"
    mounts = [{"name": "data", "mountPath": "/data"}]
    container = {"command": ["python", "-c", add, "/data/file"], "volumeMounts": mounts}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]

    async def added(name: str) -> str:
        await ended(cluster, pod(name, restartPolicy="Never", container=container, volumes=volumes))
        return (await log_of(cluster, name)).strip()

    await cluster.admin.create(CLAIMS, claim)
    assert [await added("first"), await added("second")] == ["x", "xx"]
    uid = (await cluster.admin.get(CLAIMS, "data", "default"))["metadata"]["uid"]
    await cluster.admin.delete(CLAIMS, "data", "default")

    async def made_again() -> bool:
        try:
            return str((await cluster.admin.create(CLAIMS, claim))["metadata"]["uid"]) != uid
        except AlreadyExists:
            return False

    await eventually(made_again)
    assert await added("third") == "x"


@pytest.mark.parametrize("path", ["/etc", "/", "/var/lib/karmada-etcd"])
async def test_a_path_of_the_node_is_in_the_folder_of_the_cluster_and_outlives_the_pod(
    cluster: Whole, tmp_path: Path, path: str
) -> None:
    volumes = [{"name": "host", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}]
    write = "import sys; open(sys.argv[1], 'w').write('made')"
    container = {"command": ["python", "-c", write, "/host/file"], "volumeMounts": [MOUNT]}
    found = await ended(cluster, pod("first", restartPolicy="Never", container=container, volumes=volumes))
    assert found["status"]["phase"] == "Succeeded"
    node = found["spec"]["nodeName"]
    assert [file.read_text() for file in files_below(tmp_path) if f"/nodes/{node}{path}" in str(file)] == ["made"]
    later = {"nodeName": node, "volumes": volumes}
    assert (await shown(cluster, "HOME", ["/host/file"], {"volumeMounts": [MOUNT]}, **later))["/host/file"] == "made"


@pytest.mark.parametrize(("kind", "what"), [("Directory", "directory"), ("File", "file"), ("Socket", "socket")])
async def test_a_path_that_must_be_on_the_node_and_is_not_is_named(cluster: Whole, kind: str, what: str) -> None:
    volumes = [{"name": "host", "hostPath": {"path": "/etc", "type": kind}}]
    found = await ended(cluster, pod("p", restartPolicy="Never", volumes=volumes))
    end = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (end["reason"], end["exitCode"]) == ("StartError", 128)
    assert f'volume "host": hostPath type check failed: /etc is not a {what}' in end["message"]


def projected(*sources: Obj) -> Obj:
    return {"spec": {"volumes": [{"name": "v", "projected": {"sources": list(sources)}}]}}


def test_tokens_are_renewed_after_most_of_their_life() -> None:
    short, long = ({"serviceAccountToken": {"path": "t", "expirationSeconds": n}} for n in (600, 3607))
    assert token_renewal(projected(long, short)) == 480
    assert token_renewal(projected({"configMap": {"name": "c"}})) is None


def test_the_sources_of_volumes_are_followed_wherever_they_are_named() -> None:
    wanted = projected({"configMap": {"name": "a"}}, {"secret": {"name": "b"}})
    wanted["spec"]["volumes"].append({"name": "c", "configMap": {"name": "c"}})
    wanted["spec"]["volumes"].append({"name": "d", "secret": {"secretName": "d"}})
    assert references(wanted) == {("configmaps", "a"), ("secrets", "b"), ("configmaps", "c"), ("secrets", "d")}
