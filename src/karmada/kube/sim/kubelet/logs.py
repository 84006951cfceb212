"""Generated logs of containers: line n of a container has always the same text and time.

A container writes a line when it starts and one every few seconds until it ends; the moment and the text of each follow
from the container's start and the line's number, so nothing is kept and the last lines of a long log cost no more than
those of a short one. As on a real node the size of a log is limited. A configured log (see answers) replaces all lines.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

from karmada.kube.objects import meta
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.errors import BadRequest
from karmada.kube.objects.times import parse_time, rfc3339
from karmada.kube.objects.types import Obj
from karmada.kube.server.handlers.pod_logs import LogOptions
from karmada.kube.sim.metrics.amounts import chance

INTERVAL = 5
RETAINED = 10_000
_NANO = 10**9
_SPREAD = 0.4
_LATE = 1e-6
"""Clocks have no nanoseconds: after this long a line is surely there."""
_LISTS = ("containers", "initContainers", "ephemeralContainers")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_PULLING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


# which of a container's runs


def status_of(pod: Obj, container: str) -> Obj | None:
    status = pod.get("status") or {}
    return next((s for part in _STATUSES for s in status.get(part) or () if s["name"] == container), None)


def is_running(pod: Obj, container: str) -> bool:
    return "running" in ((status_of(pod, container) or {}).get("state") or {})


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one run of a container."""

    pod: str
    container: str
    run: str
    """Distinguishes this run from others."""
    started: int
    """In nanoseconds, as is `ended`."""
    ended: int | None
    lines: tuple[str, ...] | None = None
    """All there is; None: made up as time goes by."""

    def moment(self, number: int) -> int:
        if self.lines is not None or number == 0:
            return self.started
        spread = int(_SPREAD * _NANO * chance(self.run, number))
        return self.started + number * INTERVAL * _NANO + spread

    def text(self, number: int) -> str:
        if self.lines is not None:
            return self.lines[number]
        return f"{stamp(self.moment(number))} {self.pod}/{self.container} line {number + 1}"

    def written(self, by: int) -> int:
        """Return how many lines were written by then."""
        by = by if self.ended is None else min(by, self.ended)
        if by < self.started:
            return 0
        if self.lines is not None:
            return len(self.lines)
        last = (by - self.started) // (INTERVAL * _NANO)
        return last + 1 if self.moment(last) <= by else last

    def first(self, written: int, options: LogOptions) -> int:
        """Return the first line to show."""
        number = max(0, written - RETAINED)
        if options.since is not None:
            since = int(options.since * _NANO)
            if self.lines is None:
                number = max(number, (since - self.started) // (INTERVAL * _NANO) - 1)
            while number < written and self.moment(number) < since:
                number += 1
        if options.tail is not None:
            number = max(number, written - options.tail)
        return number


def output_of(pod: Obj, container: str, text: str | None, *, previous: bool) -> Output:
    """Return the run of a container whose log is requested; BadRequest when there is none."""
    name = meta.name(pod)
    status = status_of(pod, container)
    state = (status or {}).get("state") or {}
    before = ((status or {}).get("lastState") or {}).get("terminated")
    if previous:
        if before is None:
            raise BadRequest(f'previous terminated container "{container}" in pod "{name}" not found')
        run = before
    elif "running" in state or "terminated" in state:
        run = state.get("running") or state.get("terminated") or {}
    elif before is not None:
        run = before
    else:
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        why = _PULLING.get(reason, reason)
        raise BadRequest(f'container "{container}" in pod "{name}" is waiting to start: {why}')
    started, ended = run.get("startedAt"), run.get("finishedAt")
    return Output(
        name,
        container,
        f"{meta.uid(pod)}/{container}/{started}",
        int(parse_time(started) * _NANO) if started else 0,
        int(parse_time(ended) * _NANO) if ended else None,
        tuple(text.splitlines()) if text is not None else None,
    )


def stamp(nanos: int) -> str:
    """RFC 3339 with all nine digits of a second's fraction."""
    seconds, rest = divmod(nanos, _NANO)
    return f"{rfc3339(seconds)[:-1]}.{rest:09d}Z"


# what is sent


class Cut:
    """Counts down the bytes that may still be sent."""

    def __init__(self, limit: int | None) -> None:
        self.left = limit

    def take(self, data: bytes) -> bytes:
        if self.left is None:
            return data
        data = data[: self.left]
        self.left -= len(data)
        return data


def _shown(output: Output, number: int, timestamps: bool) -> bytes:
    prefix = f"{stamp(output.moment(number))} " if timestamps else ""
    return f"{prefix}{output.text(number)}\n".encode()


def history(output: Output, options: LogOptions, now: float) -> Iterator[bytes]:
    """Return the lines there are at this moment."""
    if options.stream == "Stderr":
        return
    cut = Cut(options.limit)
    written = output.written(int(now * _NANO))
    for number in range(output.first(written, options), written):
        if cut.left == 0:
            return
        yield cut.take(_shown(output, number, options.timestamps))


async def followed(
    output: Output, options: LogOptions, clock: Clock, until: Callable[[float], Awaitable[int | None]]
) -> AsyncIterator[bytes]:
    """Yield the lines there are, then each as it comes.

    `until(seconds)` waits so long, or less if the container ends; it returns the time in nanoseconds.
    """
    cut = Cut(options.limit)
    silent = options.stream == "Stderr"
    number: int | None = None
    ended = output.ended
    while True:
        now = int(clock.now() * _NANO)
        written = output.written(now if ended is None else min(now, ended))
        if number is None:
            number = output.first(written, options)
        for line in range(number, written):
            if cut.left == 0:
                return
            if not silent:
                yield cut.take(_shown(output, line, options.timestamps))
        number = max(number, written)
        if ended is not None or cut.left == 0:
            return
        wait = (output.moment(number) - now) / _NANO if output.lines is None else float(INTERVAL)
        ended = await until(max(wait, 0.0) + _LATE)
