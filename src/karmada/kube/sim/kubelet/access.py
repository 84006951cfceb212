"""The kubelet's access to pods: logs, exec, attach and port-forward.

Everything here works on a pod that is known to be on a node; callers authorise, and add the errors of an API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

from aiohttp import web

from karmada.kube.client.pod_streams import STDOUT
from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.waiting import cancel_and_wait
from karmada.kube.server.handlers.pod_logs import LogOptions, container_named
from karmada.kube.server.http.request import Query
from karmada.kube.server.http.results import RawResult, Result, TakeOver
from karmada.kube.sim.context import KUBELET, Context
from karmada.kube.sim.kubelet import channels, portforward
from karmada.kube.sim.kubelet.answers import Answers
from karmada.kube.sim.kubelet.channels import Channels, Wanted
from karmada.kube.sim.kubelet.container_environment import describe
from karmada.kube.sim.kubelet.logs import Output, followed, history, is_running, output_of, status_of
from karmada.kube.sim.kubelet.machine import Machine, Reply
from karmada.kube.sim.kubelet.predicted_runs import reads_stdin
from karmada.kube.sim.kubelet.runtime import RecordedLog, Runtime
from karmada.kube.sim.kubelet.shell import execute, interactive, is_shell
from karmada.kube.sim.kubelet.terminal import Plain, Terminal
from karmada.kube.sim.kubelet.web import Read, Write, pass_on, serve_port

TEXT = "text/plain"

Ended = Callable[[Obj, str, int], Awaitable[None]]
"""(pod, container, exit code): the process of a container was ended through its terminal."""


async def _ignore_end(_pod: Obj, _container: str, _code: int) -> None:
    return None


class PodAccess:
    def __init__(self, context: Context, answers: Answers) -> None:
        self._context = context
        self._pods = context.informers.of(PODS)
        self.answers = answers
        self.ended: Ended = _ignore_end
        self.runtime: Runtime | None = None
        """Runtime of containers that run as processes; the others are simulated."""

    # logs

    def logs(self, pod: Obj, container: str, options: LogOptions, *, stream: bool) -> Result:
        """`stream`: the response may be streamed."""
        recorded = self._recorded(pod, container, previous=options.previous)
        if recorded is not None:
            if not options.follow or not stream:
                return RawResult(recorded.history(options), TEXT)
            return _streamed(lambda: recorded.followed(options))
        answer = self.answers.log(pod, container)
        text = answer.text if answer is not None else None
        output = output_of(pod, container, text, previous=options.previous)
        if not options.follow or not stream:
            return RawResult(b"".join(history(output, options, self._context.clock.now())), TEXT)
        return _streamed(lambda: self._followed(pod, container, output, options))

    def _recorded(self, pod: Obj, container: str, *, previous: bool) -> RecordedLog | None:
        spec = container_named(pod, container)
        if self.runtime is None or spec is None:
            return None
        return self.runtime.log(pod, spec, previous=previous)

    async def _followed(self, pod: Obj, container: str, output: Output, options: LogOptions) -> AsyncIterator[bytes]:
        with _RunWatch(self._pods, self._context.clock, pod, container) as life:
            async for piece in followed(output, options, self._context.clock, life.until):
                yield piece

    # exec and attach

    def exec(self, pod: Obj, container: Obj, command: list[str], wanted: Wanted, headers: Mapping[str, str]) -> Result:
        async def work(streams: Channels) -> Obj:
            if self._is_run(container):
                assert self.runtime is not None
                code = await self.runtime.exec(pod, container, command, streams)
            else:
                code = await self._execute(await self._machine(pod, container), command, streams)
            return channels.failed(code, command) if code else channels.success()

        return self._connected(pod, container, wanted, headers, work)

    def _is_run(self, container: Obj) -> bool:
        return self.runtime is not None and self.runtime.runs(container)

    def attach(self, pod: Obj, container: Obj, wanted: Wanted, headers: Mapping[str, str]) -> Result:
        async def work(streams: Channels) -> Obj:
            return await self._attached(pod, container, streams)

        return self._connected(pod, container, wanted, headers, work)

    def _connected(
        self, pod: Obj, container: Obj, wanted: Wanted, headers: Mapping[str, str], work: channels.Work
    ) -> Result:
        channels.check_upgrade(headers)
        if not is_running(pod, container["name"]):
            return RawResult(f'container not found ("{container["name"]}")'.encode(), TEXT, 500)

        async def run(raw: Any) -> Any:
            return await channels.serve(raw, wanted, work)

        return TakeOver(run)

    async def _machine(self, pod: Obj, container: Obj) -> Machine:
        machine = await describe(self._context.client(KUBELET), pod, container, self._context.volumes)
        machine.now = self._context.clock.now

        def reply(line: str) -> Reply | None:
            found = self.answers.command(pod, container["name"], line)
            if found is None:
                return None
            return Reply(found.stdout.encode(), found.stderr.encode(), found.code, found.delay)

        machine.reply = reply
        return machine

    async def _execute(self, machine: Machine, command: list[str], streams: Channels) -> int:
        clock = self._context.clock
        if not streams.wanted.tty:
            return await execute(machine, command, Plain(streams, clock))
        async with Terminal(streams, clock) as terminal:
            if streams.wanted.stdin and is_shell(machine, command):
                return await interactive(machine, terminal)
            return await terminal.attend(execute(machine, command, terminal))

    async def _attached(self, pod: Obj, container: Obj, streams: Channels) -> Obj:
        """Return a shell, if that is what the container runs; otherwise its output, and stdin sent back."""
        name = container["name"]
        wanted = streams.wanted
        if wanted.stdin and reads_stdin(container) and not self._is_run(container):
            machine = await self._machine(pod, container)
            code = await self._execute(machine, ["sh"], streams)
            await self.ended(pod, name, code)
            return channels.success()
        if not wanted.stdin or self._is_run(container):
            await self._show_output(pod, name, streams)
            return channels.success()
        output = asyncio.create_task(self._show_output(pod, name, streams))
        try:
            while data := await streams.stdin.read():
                await streams.write(STDOUT, data)
        finally:
            await cancel_and_wait(output)
        if container.get("stdinOnce"):
            await self.ended(pod, name, 0)
        return channels.success()

    async def _show_output(self, pod: Obj, container: str, streams: Channels) -> None:
        """Stream what the container writes from now on, until it ends."""
        recorded = self._recorded(pod, container, previous=False)
        if recorded is not None:
            async for piece in recorded.followed(LogOptions(follow=True, tail=0)):
                await streams.write(STDOUT, piece)
            return
        answer = self.answers.log(pod, container)
        output: Output = output_of(pod, container, answer.text if answer is not None else None, previous=False)
        async for piece in self._followed(pod, container, output, LogOptions(follow=True, tail=0)):
            await streams.write(STDOUT, piece)

    # ports

    def port_forward(self, pod: Obj, query: Query, headers: Mapping[str, str]) -> Result:
        portforward.check_request(headers, query)

        async def run(raw: Any) -> Any:
            return await portforward.serve(raw, query, lambda *ends: self._serve_port(pod, *ends))

        return TakeOver(run)

    async def _serve_port(self, pod: Obj, port: int, read: Read, write: Write) -> str:
        address = self.runtime.address(pod) if self.runtime is not None else ""
        if address:
            return await pass_on((address, port), port, read, write)
        return await serve_port(self.answers, pod, port, read, write)


def _streamed(pieces: Callable[[], AsyncIterator[bytes]]) -> TakeOver:
    """Return a response that is sent as its pieces come."""

    async def run(raw: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": TEXT, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        writer = await response.prepare(raw)
        assert writer is not None
        writer.send_headers()
        async with aclosing(pieces()) as sending:  # type: ignore[type-var]
            async for piece in sending:
                await response.write(piece)
        await response.write_eof()
        return response

    return TakeOver(run)


class _RunWatch:
    """Watches for the end of one run of a container: it stopped, was restarted, or the pod was deleted."""

    def __init__(self, pods: Informer, clock: Clock, pod: Obj, container: str) -> None:
        self._pods = pods
        self._clock = clock
        self._key: Key = key_of(pod)
        self._container = container
        self._run = self._of(pod)
        self._over = asyncio.Event()
        self._remove: Callable[[], None] = lambda: None

    def _of(self, pod: Obj) -> tuple[str, Any]:
        state = (status_of(pod, self._container) or {}).get("state") or {}
        return meta.uid(pod), (state.get("running") or {}).get("startedAt")

    def __enter__(self) -> _RunWatch:
        self._remove = self._pods.add_handler(self._changed)
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _changed(self, old: Obj | None, new: Obj | None) -> None:
        obj = new if new is not None else old
        if obj is None or key_of(obj) != self._key:
            return
        if new is None or self._of(new) != self._run:
            self._over.set()

    async def until(self, seconds: float) -> int | None:
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        watching = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({sleeping, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(sleeping, watching)
        return int(self._clock.now() * 10**9) if self._over.is_set() else None
