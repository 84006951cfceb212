"""Log streams and where they go: each line whole and, if wanted, with the place it comes from before it.

A stream is one container of one pod. Its bytes come as they come; here they are cut into lines, so that streams that
are followed together never mix within a line. A last line without an end gets one where another stream may follow on
the same output.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from karmada.cli.targeting import connect, pods

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.errors import NotFound
    from karmada.kube.objects.types import Obj

SELECTOR_TAIL = 10
"""Lines of each, where a selector may have found many."""


class Sink(Protocol):
    """Bytes go here."""

    def write(self, data: bytes, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The part of a log to read; a `container` of "" leaves the choice."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since: float = 0.0
    """Seconds, rounded for the server, which knows only whole ones."""
    since_time: str = ""
    limit_bytes: int = 0
    tail: int | None = None
    insecure_backend: bool = False
    all_containers: bool = False
    all_pods: bool = False

    def check(self) -> None:
        """Failure for what no server would understand."""
        if self.since and self.since_time:
            raise connect.failure("at most one of `sinceTime` or `sinceSeconds` may be specified")
        if self.all_containers and self.container:
            raise connect.failure(f"--all-containers=true should not be specified with container name {self.container}")
        if self.limit_bytes < 0:
            raise connect.failure("--limit-bytes must be greater than 0")
        if self.since < 0:
            raise connect.failure("--since must be greater than 0")
        if self.tail is not None and self.tail < -1:
            raise connect.failure("--tail must be greater than or equal to -1")
        self.query("")

    def query(self, container: str) -> dict[str, str]:
        query = {"container": container}
        flags = {
            "follow": self.follow,
            "previous": self.previous,
            "timestamps": self.timestamps,
            "insecureSkipTLSVerifyBackend": self.insecure_backend,
        }
        query |= {name: "true" for name, on in flags.items() if on}
        if self.since:
            query["sinceSeconds"] = str(int(self.since + 0.5))
        if self.since_time:
            query["sinceTime"] = _whole_second(self.since_time)
        if self.limit_bytes:
            query["limitBytes"] = str(self.limit_bytes)
        if self.tail is not None and self.tail >= 0:
            query["tailLines"] = str(self.tail)
        return query


def _whole_second(moment: str) -> str:
    from karmada.kube.objects.times import parse_time, rfc3339

    try:
        return rfc3339(parse_time(moment))
    except ValueError as error:
        raise connect.failure(str(error)) from error


@dataclass(frozen=True, slots=True)
class LogStream:
    """One container of one pod, reached through one server."""

    session: Session
    pod: Obj
    container: str

    def prefix(self, cluster: bool) -> bytes:
        """`[pod/NAME/CONTAINER] `, in front of it the cluster where several are read."""
        place = f"{self.session.name}/" if cluster else ""
        return f"[{place}pod/{self.pod['metadata']['name']}/{self.container}] ".encode()

    def chunks(self, options: LogOptions) -> AsyncIterator[bytes]:
        from karmada.kube.client.client import resource_path
        from karmada.kube.client.transport import Call

        metadata = self.pod["metadata"]
        path = resource_path(pods.pods_gvr(), metadata.get("namespace", ""), metadata["name"], "log")
        call = Call("GET", path, options.query(self.container), accept="application/json, */*")
        return self.session.client.transport.stream(call)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose logs: POD or TYPE/NAME, or else the pods with some labels."""

    word: str
    selector: str
    options: LogOptions
    seconds: float
    """To wait for a workload's first pod."""


async def streams_of(session: Session, wanted: Wanted, *, alone: bool = True) -> list[LogStream]:
    """Return the streams of all selected pods, in order; defaults that were chosen are reported.

    With several clusters every line has its container, and every message its cluster.
    """
    notify = pods.to_stderr if alone else lambda text: pods.to_stderr(f"cluster({session.name}): {text}")
    found = await (_selected(session, wanted) if wanted.selector else _named(session, wanted, notify))
    quiet = wanted.options.all_pods or not alone
    return [LogStream(session, pod, name) for pod in found for name in _containers(pod, wanted.options, quiet)]


async def _selected(session: Session, wanted: Wanted) -> list[Obj]:
    from karmada.kube.objects.errors import BadRequest

    try:
        items, _ = await session.client.list_all(pods.pods_gvr(), session.namespace, label_selector=wanted.selector)
    except BadRequest as error:
        what = f'"/v1, Resource=pods" that match label selector "{wanted.selector}", field selector ""'
        raise BadRequest(f"Unable to find {what}: {error.message}") from error
    return items


async def _named(session: Session, wanted: Wanted, notify: Callable[[str], None]) -> list[Obj]:
    from karmada.kube.objects.errors import NotFound

    try:
        obj = await pods.named_object(session, wanted.word)
    except NotFound as error:
        raise Missing(error, session.namespace) from error
    found = await pods.pods_of(session, obj, pods.best_to_read, wanted.seconds, "cannot get the logs from")
    if wanted.options.all_pods:
        return found
    if len(found) > 1:
        notify(f"Found {len(found)} pods, using pod/{found[0]['metadata']['name']}")
    return found[:1]


class Missing(connect.Failure):
    """The named object is not there, or not even its namespace."""

    def __init__(self, error: NotFound, namespace: str) -> None:
        super().__init__(f'error: error from server (NotFound): {error.message} in namespace "{namespace}"')
        self.is_namespace = error.details.get("kind") == "namespaces"


def _containers(pod: Obj, options: LogOptions, quiet: bool) -> list[str]:
    containers = pods.Containers.of(pod)
    if options.all_containers:
        return [one["name"] for part in containers for one in part]
    name = options.container
    if not name:
        name = _preferred(pod, containers)
    if not name:
        name = pods.defaulted(pod, pods.notifier(quiet))
    if containers.find(name) is None:
        raise connect.failure(f"container {name} is not valid for pod {pod['metadata']['name']}")
    return [name]


def _preferred(pod: Obj, containers: pods.Containers) -> str:
    name = pods.preferred(pod)
    if name and containers.find(name) is None:
        pods.to_stderr(f'Default container name "{name}" not found in pod {pod["metadata"]["name"]}')
        return ""
    return name


# lines


@dataclass(slots=True)
class Lines:
    """Cuts what comes into lines; the rest waits for its end."""

    _rest: list[bytes] = field(default_factory=list)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            self._rest.append(line)
            yield b"".join(self._rest) + b"\n"
            self._rest.clear()
        if rest:
            self._rest.append(rest)

    def end(self) -> bytes:
        """Return a last line that had no end."""
        rest = b"".join(self._rest)
        self._rest.clear()
        return rest


async def copy(stream: LogStream, options: LogOptions, sink: Sink, prefix: bytes, *, whole: bool) -> None:
    """Copy all of a stream, line by line; `whole`: the last line gets an end if it has none."""
    lines = Lines()
    async for chunk in stream.chunks(options):
        for line in lines.feed(chunk):
            sink.write(prefix + line)
        flush = getattr(sink, "flush", None)
        if options.follow and flush is not None:
            flush()
    rest = lines.end()
    if rest:
        sink.write(prefix + rest + (b"\n" if whole else b""))
