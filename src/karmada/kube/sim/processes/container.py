"""One run of a container as a process: prepared, started, probed, its output recorded, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.logging import get_logger
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.handlers.pod_logs import LogOptions
from karmada.kube.sim.kubelet.runtime import Observed
from karmada.kube.sim.processes import spawning
from karmada.kube.sim.processes.commands import Translation, UnknownCommand, known_command
from karmada.kube.sim.processes.images import ImageRule
from karmada.kube.sim.processes.logfile import LogFile, StreamName, history
from karmada.kube.sim.processes.probing import Emit, Prober, ProbeResult, Target, probe
from karmada.kube.sim.processes.terminals import TERM, PseudoTerminal
from karmada.kube.sim.processes.volumes import VolumeError

START_ERROR = 128
_CHUNK = 1 << 16
_OUTPUT_SECONDS = 1.0
"""How long output is still read after the end, where others hold the pipe."""
_PROBE_OUTPUT = 10 * 1024
_HOOK_SECONDS = 120.0
_MESSAGE_LINES, _MESSAGE_BYTES = 80, 2048
log = get_logger("processes")


@dataclass(frozen=True, slots=True)
class Launch:
    """The settings that a process is started with."""

    rule: ImageRule
    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: Path
    translate: Translation
    address: str


Prepare = Callable[[], Awaitable[Launch]]


class ContainerRun:
    def __init__(
        self,
        spec: Obj,
        attempt: int,
        log: LogFile,
        prepare: Prepare,
        emit: Emit,
        changed: Callable[[], None],
        grace: float,
        after: ContainerRun | None,
    ) -> None:
        """`after` is the run before, which must have ended; `grace` is for ends that probes cause."""
        self.spec = spec
        self.attempt = attempt
        self.log = log
        self.launch: Launch | None = None
        self.observed = Observed(attempt)
        self._prepare = prepare
        self._emit = emit
        self._changed = changed
        self._grace = grace
        self._after = after
        self._process: asyncio.subprocess.Process | None = None
        self._prober: Prober | None = None
        self._ending: asyncio.Task[None] | None = None
        self._deadline = math.inf
        self._stop_hook_began = False
        self._life = asyncio.create_task(self._live(), name=f"container {spec['name']}")

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.observed.exit_code is None else None

    async def ended(self) -> None:
        await asyncio.wait({self._life})

    # its life

    async def _live(self) -> None:
        try:
            if self._after is not None:
                await self._after.ended()
                self._after = None
            self.launch = await self._prepare()
            if self._deadline < math.inf:
                self._end_with(Observed(self.attempt, spawning.exit_code(-signal.SIGTERM)))
                return
            self._process = await spawning.spawn(self.launch.argv, self.launch.env, self.launch.directory)
        except (OSError, ApiError, UnknownCommand, VolumeError) as error:
            self._end_with(Observed(self.attempt, START_ERROR, "StartError", f"failed to start: {error}"))
            return
        if self._deadline < math.inf:
            self._begin_to_end(self._process)
        spawning.record(self._record_path, self._process.pid)
        try:
            await self._run(self._process, self.launch)
        finally:
            self._record_path.unlink(missing_ok=True)

    @property
    def _record_path(self) -> Path:
        return self.log.path.with_name("process.json")

    async def _run(self, process: asyncio.subprocess.Process, launch: Launch) -> None:
        target = Target(self.spec, launch.address, self._probe_command)
        self._prober = Prober(target, self._emit, self._probed, lambda: self.end(self._grace))
        self._probed()
        assert process.stdout is not None
        assert process.stderr is not None
        reading = [
            asyncio.create_task(self._read(process.stdout, "stdout")),
            asyncio.create_task(self._read(process.stderr, "stderr")),
        ]
        probing = asyncio.create_task(self._watch(self._prober, launch.address))
        try:
            code = await spawning.finished(process)
            await asyncio.wait(reading, timeout=_OUTPUT_SECONDS)
        finally:
            await cancel_and_wait(probing, *reading)
        self.log.close()
        message = self._last_words() if code else ""
        self._end_with(Observed(self.attempt, spawning.exit_code(code), message=message))

    async def _watch(self, prober: Prober, address: str) -> None:
        """Run the postStart hook, then the probes; a hook that fails ends the container."""
        hook = (self.spec.get("lifecycle") or {}).get("postStart")
        if hook and not await self._hook("PostStart", hook, address, _HOOK_SECONDS):
            self.end(self._grace)
            return
        await prober.run()

    async def _read(self, stream: asyncio.StreamReader, name: StreamName) -> None:
        """Also when it cannot be written, so that the process does not wait for a reader."""
        while data := await stream.read(_CHUNK):
            try:
                self.log.write(name, data)
            except OSError as error:
                log.warning("The output of a container is lost", container=self.spec["name"], error=str(error))

    def _last_words(self) -> str:
        """Return the end of its log, if the container wants that as the message of its end."""
        if self.spec.get("terminationMessagePolicy") != "FallbackToLogsOnError":
            return ""
        text = b"".join(history(self.log.path, LogOptions(tail=_MESSAGE_LINES)))
        return text[-_MESSAGE_BYTES:].decode(errors="replace")

    def _probed(self) -> None:
        prober = self._prober
        if prober is not None and self.observed.exit_code is None:
            self.observed = Observed(self.attempt, started=prober.started, ready=prober.ready)
            self._changed()

    def _end_with(self, observed: Observed) -> None:
        self.log.close()
        self.observed = observed
        self._changed()

    # its end

    def end(self, grace: float) -> None:
        """Begin to end it; a later call may only shorten the time."""
        deadline = asyncio.get_running_loop().time() + grace
        if self._life.done() or deadline >= self._deadline:
            return
        self._deadline = deadline
        if self._process is not None:
            self._begin_to_end(self._process)

    def _begin_to_end(self, process: asyncio.subprocess.Process) -> None:
        if self._ending is not None:
            self._ending.cancel()
        self._ending = asyncio.create_task(self._end(process))

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """After its preStop hook, which is part of the grace period."""
        hook = (self.spec.get("lifecycle") or {}).get("preStop")
        if hook and not self._stop_hook_began and self.launch is not None and self._left > 0:
            self._stop_hook_began = True
            await self._hook("PreStop", hook, self.launch.address, self._left)
        await spawning.end(process, self._left)

    @property
    def _left(self) -> float:
        """Seconds until it is killed."""
        return max(0.0, self._deadline - asyncio.get_running_loop().time())

    async def _hook(self, name: str, hook: Obj, address: str, seconds: float) -> bool:
        """Run a lifecycle hook, which has the form of a probe; whether it succeeded."""
        if "sleep" in hook:
            await asyncio.sleep(min(float(hook["sleep"]["seconds"]), seconds))
            return True
        result = await probe(Target(self.spec, address, self._probe_command), hook, seconds)
        if not result.passed:
            self._emit(WARNING, f"Failed{name}Hook", f"{name}Hook failed: {result.output}")
        return result.passed

    # commands

    async def _probe_command(self, command: list[str], seconds: float) -> ProbeResult:
        try:
            process = await self.spawn(command)
        except (OSError, UnknownCommand) as error:
            return ProbeResult(False, str(error))
        try:
            async with asyncio.timeout(seconds):
                out, err = await process.communicate()
        except TimeoutError:
            return ProbeResult(False, f'command "{" ".join(command)}" timed out')
        finally:
            with contextlib.suppress(ProcessLookupError):
                await asyncio.shield(spawning.end(process, 0.0))
        return ProbeResult(process.returncode == 0, (out + err)[:_PROBE_OUTPUT].decode(errors="replace"))

    async def spawn(self, command: list[str], *, stdin: bool = False) -> asyncio.subprocess.Process:
        """Return a further program of the table, with the environment of the container; UnknownCommand, OSError."""
        launch = self._started()
        return await spawning.spawn(self._words(launch, command), launch.env, launch.directory, stdin=stdin)

    async def spawn_at(self, terminal: PseudoTerminal, command: list[str]) -> asyncio.subprocess.Process:
        """Start a command of the container at a terminal."""
        launch = self._started()
        env = {"TERM": TERM, **launch.env}
        words = self._words(launch, command)
        process = await spawning.spawn_at_terminal(words, env, launch.directory, terminal.other_side, terminal.path)
        terminal.handed_over()
        return process

    def _started(self) -> Launch:
        if self.launch is None:
            raise UnknownCommand("the container has not started")
        return self.launch

    def _words(self, launch: Launch, command: list[str]) -> tuple[str, ...]:
        image = str(self.spec.get("image") or "")
        return known_command(launch.rule, image, command, launch.env, launch.translate)
