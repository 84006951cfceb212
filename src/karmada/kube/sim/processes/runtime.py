"""The process runtime: containers of known images run as processes of this machine, as the user who started it.

Each such pod has a folder with its volumes, logs and the working folders of its containers, and an address of its own
on the loopback interface. No process outlives the simulator: the kernel ends them with it, and what is left all the
same is killed at the next start, when the kubelet finds the containers gone and restarts them.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from karmada.kube.client.pod_streams import STDERR, STDOUT
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.event_filter import Handler
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.handlers.pod_logs import LogOptions
from karmada.kube.sim.context import KUBELET, Context
from karmada.kube.sim.kubelet.channels import Channels
from karmada.kube.sim.kubelet.logs import output_of, status_of
from karmada.kube.sim.kubelet.runtime import Observed, RecordedLog
from karmada.kube.sim.processes import logfile, spawning
from karmada.kube.sim.processes.commands import UnknownCommand
from karmada.kube.sim.processes.container import ContainerRun
from karmada.kube.sim.processes.images import ImageTable
from karmada.kube.sim.processes.pod import ProcessPod, Settings
from karmada.kube.sim.processes.terminals import PseudoTerminal, attended
from karmada.kube.sim.processes.volumes import references

log = get_logger("processes")
_STOP_SECONDS = 5.0
_NOT_FOUND = 127
_CHUNK = 1 << 16
_SOURCES = {name: GVR("", "v1", name) for name in ("configmaps", "secrets")}


class ProcessRuntime:
    def __init__(
        self,
        context: Context,
        folder: Path,
        table: ImageTable,
        api_server: Callable[[], tuple[str, int]],
        more_env: Callable[[Key], dict[str, str]] = lambda _key: {},
    ) -> None:
        """`folder` is the cluster's; `api_server` is where its API is reached; `more_env` are variables of a pod."""
        self.table = table
        self._context = context
        self._settings = Settings(context.client(KUBELET), folder, table, context.clock.now, api_server, more_env)
        self._pods: dict[Key, ProcessPod] = {}
        self._removing: set[asyncio.Task[None]] = set()
        self._followed: set[str] = set()

    def connect(self, changed: Callable[[Key], None], emit: Callable[[Obj, str, str, str], None]) -> None:
        self._settings.changed, self._settings.emit = changed, emit

    # life cycle

    def clean_up(self) -> None:
        """Before the start: end what a simulator that was killed has left."""
        left = spawning.kill_left(self._settings.pods)
        if left:
            log.warning("Killed processes that an earlier simulator left", count=left)

    def keep_only(self, uids: Iterable[str]) -> None:
        """Remove the folders of pods that are no more."""
        kept = set(uids)
        for folder in self._settings.pods.glob("*"):
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    async def stop(self) -> None:
        """End all processes; their pods keep their status and are restarted with the next start."""
        for pod in self._pods.values():
            pod.end(_STOP_SECONDS)
        await asyncio.gather(*(pod.ended() for pod in self._pods.values()), *self._removing)
        self._pods.clear()

    def processes(self) -> list[Obj]:
        """Return what runs now, for people."""
        return [
            {"pod": str(pod.key), "container": name, "pid": run.pid, "address": pod.address}
            for pod in self._pods.values()
            for name, run in pod.runs.items()
            if run.pid is not None
        ]

    # what the kubelet calls

    def runs(self, container: Obj) -> bool:
        return self.table.of(container.get("image") or "") is not None

    def sync(self, pod: Obj, wanted: Mapping[str, int], grace: float) -> None:
        key = key_of(pod)
        found = self._pods.get(key)
        if found is None:
            if not wanted:
                return
            found = self._pods[key] = ProcessPod(self._settings, pod)
            self._follow(pod)
        found.sync(pod, wanted, grace)

    def observe(self, key: Key, uid: str, container: str, attempt: int) -> Observed | None:
        pod = self._pods.get(key)
        run = pod.runs.get(container) if pod is not None and pod.uid == uid else None
        return run.observed if run is not None and run.attempt == attempt else None

    def kill(self, key: Key) -> None:
        pod = self._pods.get(key)
        if pod is not None:
            pod.end(0.0)

    def forget(self, key: Key, uid: str = "") -> None:
        pod = self._pods.get(key)
        if pod is not None and pod.uid != uid:
            del self._pods[key]
            task = asyncio.create_task(pod.remove(), name=f"removing {key}")
            self._removing.add(task)
            task.add_done_callback(self._removing.discard)

    def address(self, pod: Obj) -> str:
        """Also of a pod whose processes ran before the simulator was restarted."""
        containers = (pod.get("spec") or {}).get("containers") or ()
        return str((pod.get("status") or {}).get("podIP") or "") if any(map(self.runs, containers)) else ""

    # ConfigMaps and Secrets

    def _follow(self, pod: Obj) -> None:
        """Watch the sources of volumes, from the first pod on that has such."""
        for resource in {resource for resource, _ in references(pod)} - self._followed:
            self._followed.add(resource)
            informer = self._context.informers.of(_SOURCES[resource], shape=METADATA)
            informer.add_handler(self._refresh(resource))
            informer.start()

    def _refresh(self, resource: str) -> Handler:
        def handle(old: Obj | None, new: Obj | None) -> None:
            changed = new if new is not None else old
            if changed is None:
                return
            namespace, name = key_of(changed)
            for key, pod in self._pods.items():
                if key.namespace == namespace:
                    pod.source_changed(resource, name)

        return handle

    # access

    def log(self, pod: Obj, container: Obj, *, previous: bool) -> RecordedLog | None:
        if not self.runs(container):
            return None
        name = container["name"]
        output_of(pod, name, None, previous=previous)  # raises what is to be reported where there is no such run
        status = status_of(pod, name) or {}
        attempt = int(status.get("restartCount") or 0)
        if previous and "waiting" not in (status.get("state") or {}):
            attempt -= 1
        found = self._pods.get(key_of(pod))
        run = found.runs.get(name) if found is not None else None
        if run is not None and run.attempt == attempt:
            return _Recorded(run.log)
        path = self._settings.pods / pod["metadata"]["uid"] / "containers" / name / f"{attempt}.log"
        ended = logfile.LogFile(path, self._settings.now)
        ended.closed = True
        return _Recorded(ended)

    async def exec(self, pod: Obj, container: Obj, command: list[str], streams: Channels) -> int:
        found = self._pods.get(key_of(pod))
        run = found.runs.get(container["name"]) if found is not None else None
        if run is None:
            await streams.write(STDERR, f'container not found ("{container["name"]}")\n'.encode())
            return _NOT_FOUND
        try:
            return await (_at_terminal if streams.wanted.tty else _at_pipes)(run, command, streams)
        except (UnknownCommand, OSError) as error:
            await streams.write(STDERR, f"{error}\n".encode())
            return _NOT_FOUND


class _Recorded:
    def __init__(self, file: logfile.LogFile) -> None:
        self._file = file

    def history(self, options: LogOptions) -> bytes:
        return b"".join(logfile.history(self._file.path, options))

    def followed(self, options: LogOptions) -> AsyncIterator[bytes]:
        return logfile.followed(self._file, options)


async def _at_pipes(run: ContainerRun, command: list[str], streams: Channels) -> int:
    process = await run.spawn(command, stdin=streams.wanted.stdin)
    try:
        return await _piped(process, streams)
    finally:
        await asyncio.shield(spawning.end(process, 0.0))


async def _at_terminal(run: ContainerRun, command: list[str], streams: Channels) -> int:
    with PseudoTerminal() as terminal:
        process = await run.spawn_at(terminal, command)
        try:
            return await attended(process, terminal, streams)
        finally:
            await asyncio.shield(spawning.end(process, 0.0))


async def _piped(process: asyncio.subprocess.Process, streams: Channels) -> int:
    """Connect a process with the streams of a client until it ends."""

    async def out(reader: asyncio.StreamReader | None, channel: int) -> None:
        while reader is not None and (data := await reader.read(_CHUNK)):
            await streams.write(channel, data)

    async def feed(writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await streams.stdin.read():
                writer.write(data)
                await writer.drain()
            writer.close()

    feeding = [asyncio.create_task(feed(process.stdin))] if process.stdin is not None else []
    try:
        await asyncio.gather(out(process.stdout, STDOUT), out(process.stderr, STDERR))
        return spawning.exit_code(await spawning.finished(process))
    finally:
        await cancel_and_wait(*feeding)
