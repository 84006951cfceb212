"""The controllers in processes of their own, started and watched by the process that has the API server.

`karmada --workers N` keeps the API server, admission and the scheduler, and starts N processes that share the work of
the controllers among them (see kube/runtime/membership). A worker gets the flags of its parent, and a kubeconfig with a
certificate of its own, which its parent renews. One that ends is started again, with growing pauses; its Lease is
deleted at once, since its parent knows that it is dead, so that the others need not wait for it to expire. Workers end
when their standard input does: with their parent, however that ends.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from karmada.components import election
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvrs import LEASES
from karmada.kube.runtime.back_off import Attempts, BackOff
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.membership import GROUP
from karmada.kube.runtime.waiting import cancel_and_wait, finish_within

if TYPE_CHECKING:
    from karmada.kube.client.client import Client
    from karmada.kube.objects.clock import Clock
    from karmada.kube.server.app import ApiServer

PROGRAM: Final = "karmada.components.worker"
_NAME: Final = "karmada-worker"
_CERTIFICATE_DAYS: Final = 7.0
_RENEWAL_SECONDS: Final = 86400.0
_LOOK_SECONDS: Final = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_STOP_SECONDS: Final = 20.0
"""How long a worker may take to finish what it is doing."""
log = get_logger("workers")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """`arguments`: the command line of this process, which is also that of the workers."""

    count: int
    arguments: Sequence[str]
    metrics_port: int = 0
    """Port of the first worker's page with metrics and health; 0: each has a free port, which its log names."""


class Workers:
    """`former`: under which identity a process on this store would have led, which has ended by now; "": unknown."""

    def __init__(self, server: ApiServer, options: WorkerOptions, former: str, clock: Clock) -> None:
        self._server = server
        self._options = options
        self._former = former
        self._leases = f"{_NAME}-" if former else f"{_NAME}-{uuid.uuid4().hex[:6]}-"
        """Prefix of the names of its workers' Leases: on a store that others use, too, with its own id."""
        self._clock = clock
        self._client: Client = server.client(user_agent="karmada-workers")
        self._directory: Path = server.config.data_dir / "workers"
        self._tasks: list[asyncio.Task[None]] = []
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = False
        self._restarts: Counter[int] = Counter()
        gauges = server.metrics.gauges
        gauges["karmada_worker_running"] = lambda: [
            ({"worker": _name(number)}, float(number in self._processes)) for number in self._numbers
        ]
        gauges["karmada_worker_restarts_total"] = lambda: [
            ({"worker": _name(number)}, self._restarts[number]) for number in self._numbers
        ]

    @property
    def _numbers(self) -> range:
        return range(1, self._options.count + 1)

    @property
    def pids(self) -> dict[int, int]:
        """Return the running processes by the number of the worker."""
        return {number: process.pid for number, process in self._processes.items()}

    async def start(self) -> None:
        if self._former:
            await self._end_former_lead()
            await self._end_memberships(self._leases)
        self._tasks = [asyncio.create_task(self._keep(number), name=f"worker {number}") for number in self._numbers]
        self._tasks.append(asyncio.create_task(self._renew_certificates(), name="worker certificates"))

    async def stop(self) -> None:
        """Workers hand over what they have, to each other until the last one."""
        self._stopping = True
        processes = list(self._processes.values())
        for process in processes:
            _signal(process, signal.SIGTERM)
        waiting = [asyncio.create_task(_ended(process)) for process in processes]
        await finish_within(self._clock, waiting, _STOP_SECONDS)
        for process in processes:
            _signal(process, signal.SIGKILL)
        await cancel_and_wait(*self._tasks)

    async def _end_former_lead(self) -> None:
        """Delete the lease of a crashed process that had this store open: that it is over needs no waiting.

        Nor do the Leases of its workers: if one of them still runs, paused, the server refuses what it writes.
        """
        try:
            lease = await self._client.get(LEASES, election.CONTROLLERS, election.NAMESPACE)
        except NotFound:
            return
        if lease["spec"].get("holderIdentity") == self._former:
            await self._client.delete(LEASES, election.CONTROLLERS, election.NAMESPACE, uid=meta.uid(lease))

    # one worker

    async def _keep(self, number: int) -> None:
        attempts = Attempts(self._clock, BackOff(_FIRST_PAUSE, _LONGEST_PAUSE))
        while not self._stopping:
            try:
                await self._run(number)
            except OSError as error:
                log.error("A worker could not be started", error, worker=number)
            if not self._stopping:
                await attempts.pause()

    async def _run(self, number: int) -> None:
        self._write_kubeconfig(number)
        process = await asyncio.create_subprocess_exec(
            *self._command(number),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        self._processes[number] = process
        log.info("Worker started", worker=number, pid=process.pid)
        try:
            await _pass_on(process, f"[worker {number}] ")
            code = await process.wait()
        finally:
            self._processes.pop(number, None)
        if not self._stopping:
            self._restarts[number] += 1
            log.info("A worker has ended and is started again", worker=number, code=code)
            await self._end_memberships(f"{self._leases}{number}-")

    def _command(self, number: int) -> list[str]:
        port = self._options.metrics_port and self._options.metrics_port + number - 1
        return [
            sys.executable,
            "-m",
            PROGRAM,
            *self._options.arguments,
            f"--worker-name={self._leases}{number}",
            f"--worker-kubeconfig={self._kubeconfig(number)}",
            f"--worker-address=127.0.0.1:{port}",
        ]

    async def _end_memberships(self, prefix: str) -> None:
        """Delete the Leases of workers that have ended."""
        try:
            selector = f"{GROUP}={election.CONTROLLERS}"
            leases, _ = await self._client.list_all(LEASES, election.NAMESPACE, label_selector=selector)
            for lease in leases:
                if meta.name(lease).startswith(prefix):
                    await self._client.delete(LEASES, meta.name(lease), election.NAMESPACE, uid=meta.uid(lease))
        except (ApiError, ConnectionFailed) as error:
            log.error("The Lease of a worker that has ended could not be deleted and will expire", error, prefix=prefix)

    # certificates

    def _kubeconfig(self, number: int) -> Path:
        return self._directory / f"{_name(number)}.kubeconfig"

    def _write_kubeconfig(self, number: int) -> None:
        """With a new certificate, readable by the owner only."""
        from karmada.kube.server.auth.kubeconfig import write_kubeconfig

        server = self._server
        pair = server.pki.ca.issue(f"system:{_name(number)}", ["system:masters"], days=_CERTIFICATE_DAYS)
        write_kubeconfig(
            self._kubeconfig(number),
            server.url,
            server.credentials.root_pem,
            pair.cert_pem,
            pair.key_pem,
            server.config.context,
        )

    async def _renew_certificates(self) -> None:
        """Renew them every day by the time of day, which may be set; workers follow their files."""
        renewed = self._clock.now()
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            if 0 <= self._clock.now() - renewed < _RENEWAL_SECONDS:
                continue
            renewed = self._clock.now()
            for number in self._numbers:
                self._write_kubeconfig(number)


def _name(number: int) -> str:
    return f"{_NAME}-{number}"


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    if process.returncode is None:
        try:
            process.send_signal(number)
        except ProcessLookupError:
            return


async def _ended(process: asyncio.subprocess.Process) -> None:
    await process.wait()


async def _pass_on(process: asyncio.subprocess.Process, prefix: str) -> None:
    """Pass what a worker prints to this process's log, line by line."""
    assert process.stdout is not None
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:  # longer than the buffer
            line = await process.stdout.read(1 << 16)
        if not line:
            return
        sys.stderr.write(prefix + line.decode(errors="replace").rstrip("\n") + "\n")
