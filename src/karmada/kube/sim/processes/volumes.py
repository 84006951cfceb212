"""The volumes of a pod as real folders, and the tree in which a container's process finds them.

ConfigMap, Secret, projected and downwardAPI volumes are files (0600) that are refreshed when their sources change; an
emptyDir is an empty folder; a claim is a folder that outlives the pod. A hostPath is a path of the pod's node, whose
files are in the folder of the cluster: those of the machine are out of reach. Every container has a root folder with a
link for each mount path, so `root + path` is where a program finds what its pod calls `path`.
"""

from __future__ import annotations

import asyncio
import posixpath
import shutil
from pathlib import Path

from karmada.kube.client.client import Client
from karmada.kube.objects.gvrs import CLAIMS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.kubelet.container_environment import Description, expanded
from karmada.kube.sim.processes.files import replace_file

_WRITTEN = ("configMap", "secret", "projected", "downwardAPI")
_EMPTY = ("emptyDir", "ephemeral")
_TOKEN_SHARE = 0.8
"""The part of its life after which a token is renewed."""
_LEAST_TOKEN_SECONDS = 1.0


class VolumeError(Exception):
    """A volume that the process runtime cannot provide; the message is for the pod's events."""


class PodVolumes:
    def __init__(self, client: Client, folder: Path, host_folder: Path) -> None:
        """`folder` is the pod's; `host_folder` is the cluster's."""
        self._client = client
        self._folder = folder / "volumes"
        self._host_folder = host_folder
        self._written: dict[str, set[str]] = {}
        """Files that were written, by volume."""
        self._lock = asyncio.Lock()

    async def prepare(self, pod: Obj) -> None:
        """Make or refresh all volumes; VolumeError."""
        async with self._lock:
            for volume in pod["spec"].get("volumes") or ():
                await self._prepare(pod, volume)

    async def _prepare(self, pod: Obj, volume: Obj) -> None:
        folder = self._folder / volume["name"]
        if any(kind in volume for kind in _WRITTEN):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            files = await Description(self._client, pod, pod["spec"]["containers"][0]).volume(volume)
            self._write(volume["name"], folder, files)
        elif any(kind in volume for kind in _EMPTY):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            self._from_host(folder, await self._of_claim(claim, pod["metadata"]["namespace"]))
        elif "hostPath" in volume:
            self._host_path(folder, volume, pod["spec"].get("nodeName") or "")
        else:
            kind = next((key for key in volume if key != "name"), "unknown")
            raise VolumeError(f'volume "{volume["name"]}": {kind} volumes cannot be used by processes')

    async def _of_claim(self, name: str, namespace: str) -> Path:
        """Return the folder of a claim's volume: a later claim of the same name begins with an empty one."""
        claim = await self._client.get(CLAIMS, name, namespace)
        volume = str(claim["spec"].get("volumeName") or "")
        if not volume:
            raise VolumeError(f'persistentvolumeclaim "{name}" is not bound')
        return self._host_folder / "claims" / volume

    def _write(self, name: str, folder: Path, files: dict[str, bytes]) -> None:
        for path, content in files.items():
            if ".." in path.split("/") or path.startswith("/"):
                raise VolumeError(f'volume "{name}": the path {path} leads outside of the volume')
            target = folder / path
            if not target.is_file() or target.read_bytes() != content:
                replace_file(target, content)
        for path in self._written.get(name, set()) - files.keys():
            (folder / path).unlink(missing_ok=True)
        self._written[name] = set(files)

    def _host_path(self, link: Path, volume: Obj, node: str) -> None:
        source = volume["hostPath"]
        given, kind = str(source.get("path") or ""), str(source.get("type") or "")
        target = self._on_node(given, node)
        if kind and not kind.endswith("OrCreate") and not target.exists():
            raise VolumeError(f'volume "{volume["name"]}": hostPath type check failed: {given} is not a {kind.lower()}')
        if "File" in kind:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.touch(0o600)
        self._from_host(link, target)

    def _on_node(self, path: str, node: str) -> Path:
        """Return where the file of a node is; a path in the folder of the cluster is taken as it is."""
        real, own = Path(path).resolve(), self._host_folder.resolve()
        if real.is_relative_to(own):
            return real
        target = own / "nodes" / node / posixpath.normpath(f"/{path}").lstrip("/")
        if not target.resolve().is_relative_to(own):
            raise VolumeError(f"hostPath {path} leads outside of {self._host_folder} by a link")
        return target

    @staticmethod
    def _from_host(link: Path, target: Path) -> None:
        if not target.exists():
            target.mkdir(mode=0o700, parents=True)
        link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _link(link, target)

    def mount(self, root: Path, container: Obj, env: dict[str, str]) -> list[str]:
        """Link the container's volumes into its root; returns the paths."""
        paths = []
        for mount in sorted(container.get("volumeMounts") or (), key=lambda mount: len(mount["mountPath"])):
            path = posixpath.normpath(mount["mountPath"])
            sub_path = mount.get("subPath") or expanded(mount.get("subPathExpr") or "", env)
            source = self._folder / mount["name"] / sub_path
            if sub_path and not source.exists():
                source.mkdir(mode=0o700, parents=True)
            link = root / path.lstrip("/")
            link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _link(link, source)
            paths.append(path)
        return paths

    def remove_secret_files(self) -> None:
        """Delete files from the API, which the disk has only while they are used; the next start writes them again."""
        for name in self._written:
            shutil.rmtree(self._folder / name, ignore_errors=True)
        self._written.clear()


def token_renewal(pod: Obj) -> float | None:
    """Seconds after which the pod's tokens have to be renewed; None if it has none."""
    lifetimes = [
        float(source["serviceAccountToken"].get("expirationSeconds") or 3600)
        for volume in pod["spec"].get("volumes") or ()
        for source in (volume.get("projected") or {}).get("sources") or ()
        if "serviceAccountToken" in source
    ]
    return max(_LEAST_TOKEN_SECONDS, min(lifetimes) * _TOKEN_SHARE) if lifetimes else None


def references(pod: Obj) -> set[tuple[str, str]]:
    """Return the (resource, name) of ConfigMaps and Secrets in its volumes, optional ones too."""
    found: set[tuple[str, str]] = set()
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            if source.get("configMap"):
                found.add(("configmaps", str(source["configMap"].get("name") or "")))
            if source.get("secret"):
                found.add(("secrets", str(source["secret"].get("secretName") or source["secret"].get("name") or "")))
    return found


def _link(link: Path, target: Path) -> None:
    if link.is_symlink():
        if link.readlink() == target:
            return
        link.unlink()
    if not link.exists():
        link.symlink_to(target)
