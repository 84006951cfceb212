"""A pod of which containers run as processes: its folder, its volumes and the runs of its containers."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from karmada.kube.client import cluster_names
from karmada.kube.client.client import Client
from karmada.kube.client.cluster_names import NAMES_FILE, POD_ADDRESS, POD_NAMESPACE, POD_ROOT
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.handlers.pod_logs import container_named
from karmada.kube.sim.kubelet.container_environment import Description, hostname
from karmada.kube.sim.processes.commands import Translation, command_line, translated_env
from karmada.kube.sim.processes.container import ContainerRun, Launch
from karmada.kube.sim.processes.images import ImageTable
from karmada.kube.sim.processes.logfile import LogFile
from karmada.kube.sim.processes.volumes import PodVolumes, VolumeError, references, token_renewal

log = get_logger("processes")
_PASSED_ON = ("LANG", "LC_ALL", "TZ")
_RETRY_SECONDS = 10.0
_NAMES_LOOKS, _NAMES_PAUSE = 300, 0.1
"""How long a program that cannot look up names waits for those on its command line to have addresses."""


class Settings:
    """Settings that all process pods of a cluster have in common."""

    def __init__(
        self,
        client: Client,
        folder: Path,
        table: ImageTable,
        now: Callable[[], float],
        api_server: Callable[[], tuple[str, int]],
        more_env: Callable[[Key], dict[str, str]],
    ) -> None:
        self.client = client
        self.folder = folder
        """The cluster's."""
        self.table = table
        self.now = now
        self.api_server = api_server
        self.more_env = more_env
        self.changed: Callable[[Key], None] = lambda _key: None
        self.emit: Callable[[Obj, str, str, str], None] = lambda *_: None

    @property
    def pods(self) -> Path:
        return self.folder / "pods"

    @property
    def names_file(self) -> Path:
        return self.folder / "names.json"


class _Names:
    """Addresses of cluster names, and those names that have none yet."""

    def __init__(self, resolve: Callable[[str], str]) -> None:
        self._resolve = resolve
        self.unknown: set[str] = set()

    def __call__(self, name: str) -> str:
        found = self._resolve(name)
        if not found:
            self.unknown.add(name)
        return found


class ProcessPod:
    def __init__(self, settings: Settings, pod: Obj) -> None:
        self._settings = settings
        self.pod = pod
        """As last synced."""
        self.key = key_of(pod)
        self.uid = str(pod["metadata"]["uid"])
        self.folder = settings.pods / self.uid
        self.runs: dict[str, ContainerRun] = {}
        """The last run of each container."""
        self._volumes = PodVolumes(settings.client, self.folder, settings.folder)
        self._refresh = asyncio.Event()
        self._refreshing: asyncio.Task[None] | None = None

    def sync(self, pod: Obj, wanted: Mapping[str, int], grace: float) -> None:
        self.pod = pod
        for name, run in self.runs.items():
            if wanted.get(name) != run.attempt:
                run.end(grace)
        for name, attempt in wanted.items():
            last = self.runs.get(name)
            if last is None or last.attempt != attempt:
                self._start(name, attempt, last)
        if wanted and self._refreshing is None:
            self._refreshing = asyncio.create_task(self._keep_fresh(), name=f"volumes of {self.key}")
        elif not wanted and self._refreshing is not None and self._is_over():
            self._refreshing.cancel()
            self._refreshing = None
            self._volumes.remove_secret_files()

    def _is_over(self) -> bool:
        return all(run.observed.exit_code is not None for run in self.runs.values())

    def _start(self, name: str, attempt: int, after: ContainerRun | None) -> None:
        spec = container_named(self.pod, name)
        assert spec is not None
        folder = self.folder / "containers" / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._drop_old_logs(folder, attempt)
        self.runs[name] = ContainerRun(
            spec,
            attempt,
            LogFile(folder / f"{attempt}.log", self._settings.now),
            lambda: self._prepare(spec, folder / "root"),
            lambda *event: self._settings.emit(self.pod, *event),
            lambda: self._settings.changed(self.key),
            float(self.pod["spec"].get("terminationGracePeriodSeconds") or 0),
            after,
        )

    @staticmethod
    def _drop_old_logs(folder: Path, attempt: int) -> None:
        """Delete old logs, but for the run before, which is kept for --previous."""
        for path in folder.glob("*.log*"):
            if path.name.split(".")[0] not in (str(attempt - 1), str(attempt)):
                path.unlink()

    async def _prepare(self, spec: Obj, root: Path) -> Launch:
        """Return the volumes as they are now, and what the container's program is started with."""
        (root / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
        await self._volumes.prepare(self.pod)
        own = self._base_env(root)
        env = await Description(self._settings.client, self.pod, spec).environment(own)
        paths = self._volumes.mount(root, spec, env)
        rule = self._settings.table.of(spec.get("image") or "")
        assert rule is not None
        names = _Names(self._resolve) if rule.resolve_names else None
        translate = Translation(str(root), paths, self.address, names)
        directory = root / str(spec.get("workingDir") or "").lstrip("/")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        argv = command_line(rule, spec, env, translate)
        if names is not None and names.unknown:
            await self._wait_for(names.unknown)
            argv = command_line(rule, spec, env, translate)
        return Launch(rule, argv, translated_env(env, own, translate), directory, translate, self.address)

    async def _wait_for(self, names: set[str]) -> None:
        """Until these names have addresses: a program in a container would look them up when it needs them."""
        for _ in range(_NAMES_LOOKS):
            if all(map(self._resolve, names)):
                return
            await asyncio.sleep(_NAMES_PAUSE)

    @property
    def address(self) -> str:
        return str((self.pod.get("status") or {}).get("podIP") or "")

    def _resolve(self, name: str) -> str:
        """Return the address of a cluster name; the pod's own name has one before the pod is ready."""
        spec = self.pod["spec"]
        own = {f"{hostname(self.pod)}.{spec.get('subdomain')}.{self.key.namespace}": {"addresses": [self.address]}}
        found = cluster_names.resolve({**cluster_names.read(self._settings.names_file), **own}, name, 0, "")
        return found[0][0] if found else ""

    def _base_env(self, root: Path) -> dict[str, str]:
        host, port = self._settings.api_server()
        path = os.pathsep.join((str(Path(sys.executable).parent), os.defpath))
        return {
            **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            "PATH": path,
            "HOME": str(root),
            "TMPDIR": str(root / "tmp"),
            "HOSTNAME": hostname(self.pod),
            "PYTHONUNBUFFERED": "1",
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": str(port),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
            POD_ROOT: str(root),
            POD_ADDRESS: self.address,
            POD_NAMESPACE: self.key.namespace,
            NAMES_FILE: str(self._settings.names_file),
            **self._settings.more_env(self.key),
        }

    # volumes

    def source_changed(self, resource: str, name: str) -> None:
        """Update files after a ConfigMap or Secret of the namespace has changed."""
        if (resource, name) in references(self.pod):
            self._refresh.set()

    async def _keep_fresh(self) -> None:
        """Rewrite the volumes when a source changes, and tokens before they end."""
        seconds = token_renewal(self.pod)
        while True:
            try:
                async with asyncio.timeout(seconds):
                    await self._refresh.wait()
            except TimeoutError:
                pass
            self._refresh.clear()
            try:
                await self._volumes.prepare(self.pod)
                seconds = token_renewal(self.pod)
            except (VolumeError, ApiError, OSError) as error:
                log.warning("A pod's volumes could not be refreshed", pod=str(self.key), error=str(error))
                seconds = _RETRY_SECONDS

    # the end

    def end(self, grace: float) -> None:
        for run in self.runs.values():
            run.end(grace)

    async def ended(self) -> None:
        """Wait until all processes have ended."""
        if self._refreshing is not None:
            await cancel_and_wait(self._refreshing)
            self._refreshing = None
        for run in self.runs.values():
            await run.ended()
        self._volumes.remove_secret_files()

    async def remove(self) -> None:
        self.end(0.0)
        await self.ended()
        shutil.rmtree(self.folder, ignore_errors=True)
