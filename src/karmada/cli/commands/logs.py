"""`karmadactl logs`: logs of containers in one cluster or in several.

One cluster is read as kubectl reads it. With several, every line has a prefix; the clusters are read concurrently, and
each is printed as soon as it is complete, so that none waits for a slow one. A cluster that fails does not affect the
others: it is reported on stderr, and the exit code is 1.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import click

from karmada.cli.streams.log_streams import (
    SELECTOR_TAIL,
    LogOptions,
    LogStream,
    Missing,
    Sink,
    Wanted,
    copy,
    streams_of,
)
from karmada.cli.streams.streaming import plain_output
from karmada.cli.targeting import connect, pods

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session

_USAGE = "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]"
_KEPT = 8 << 20
"""Bytes of one cluster's logs that are kept in memory while others are read; more goes to a file."""


@dataclass(frozen=True, slots=True)
class Request:
    """The logs to read, whatever cluster they are in."""

    wanted: Wanted
    prefix: bool
    ignore_errors: bool
    most: int
    """Streams to follow."""


@click.command()
@click.argument("words", nargs=-1, metavar="(POD | TYPE/NAME) [CONTAINER]")
@connect.connection_flags
@connect.namespace_flag
@click.option("-C", "--cluster", "clusters", multiple=True, help="The member to read from; may be repeated.")
@click.option("--all-clusters", is_flag=True, help="Read from every member.")
@click.option("-l", "--selector", default="", help="Logs of all pods with these labels.")
@click.option("-c", "--container", default="", help="The container [the pod's default or first container].")
@click.option("--all-containers", is_flag=True, help="Logs of all containers of the pods.")
@click.option("--all-pods", is_flag=True, help="Logs of all pods of the workload, with --prefix.")
@click.option("-f", "--follow", is_flag=True, help="Stream new lines as they are written.")
@click.option("-p", "--previous", is_flag=True, help="Logs of the previous instance of the container.")
@click.option(
    "--tail",
    type=int,
    default=None,
    help="Print this many of the last lines; -1 prints all [10 with a selector, else -1].",
)
@click.option("--since", type=connect.Duration(), default="0s", help="Only lines newer than this, e.g. 5m.")
@click.option("--since-time", default="", help="Only lines after this time (RFC 3339).")
@click.option("--timestamps", is_flag=True, help="Print the time of each line.")
@click.option("--limit-bytes", type=int, default=0, help="Print at most this many bytes.")
@click.option("--prefix", is_flag=True, help="Print the pod and the container before each line.")
@click.option("--ignore-errors", is_flag=True, help="Report a log that cannot be read and continue with the others.")
@click.option(
    "--max-log-requests", type=int, default=5, show_default=True, help="The maximum number of logs to follow at once."
)
@click.option(
    "--pod-running-timeout", type=connect.Duration(), default="20s", help="How long to wait until a pod runs [20s]."
)
@click.option("--insecure-skip-tls-verify-backend", is_flag=True, help="Do not verify the certificate of the kubelet.")
def logs(
    words: tuple[str, ...],
    way: connect.Way,
    namespace: str,
    clusters: tuple[str, ...],
    all_clusters: bool,
    selector: str,
    container: str,
    all_containers: bool,
    all_pods: bool,
    follow: bool,
    previous: bool,
    tail: int | None,
    since: float,
    since_time: str,
    timestamps: bool,
    limit_bytes: int,
    prefix: bool,
    ignore_errors: bool,
    max_log_requests: int,
    pod_running_timeout: float,
    insecure_skip_tls_verify_backend: bool,
) -> None:
    """Print the logs of a pod, of a workload's pod, or of all pods with some labels.

    With several clusters, each line starts with its cluster, pod and container.

    \b
    Examples:
      karmadactl logs nginx --cluster=member1
      karmadactl logs -f deployment/nginx -c web --since=10m -C member1
      karmadactl logs -l app=nginx --all-containers --prefix -C member1
      karmadactl logs -l app=nginx --all-clusters
    """
    names = connect.commas(clusters)
    if not names and not all_clusters:
        raise connect.run(_cluster_missing(way, namespace, words[0] if words else ""))
    if names and all_clusters:
        raise connect.failure("--all-clusters and --cluster cannot be used together")
    _check_words(words, selector)
    if pod_running_timeout <= 0:
        raise connect.failure("--pod-running-timeout must be higher than zero")
    options = LogOptions(
        container=container or (words[1] if len(words) > 1 else ""),
        follow=follow,
        previous=previous,
        timestamps=timestamps,
        since=since,
        since_time=since_time,
        limit_bytes=limit_bytes,
        tail=SELECTOR_TAIL if selector and tail is None else tail,
        insecure_backend=insecure_skip_tls_verify_backend,
        all_containers=all_containers,
        all_pods=all_pods,
    )
    options.check()
    if container and len(words) > 1:
        raise connect.failure("only one of -c or an inline [CONTAINER] arg is allowed")
    wanted = Wanted(words[0] if words else "", selector, options, pod_running_timeout)
    request = Request(wanted, prefix or all_pods, ignore_errors, max_log_requests)
    with plain_output() as output:
        if all_clusters or len(set(names)) > 1:
            chosen = [] if all_clusters else names
            connect.run(_from_several(way, namespace, chosen, request, output))
        else:
            connect.run(_from_one(way, namespace, names[0], request, output))


def _check_words(words: tuple[str, ...], selector: str) -> None:
    if len(words) > 2 or not (words or selector):
        raise connect.usage(f"expected '{_USAGE}'.\nPOD or TYPE/NAME is a required argument for the logs command")
    if len(words) == 1 and selector:
        raise connect.usage("only a selector (-l) or a POD name is allowed")


async def _cluster_missing(way: connect.Way, namespace: str, word: str) -> connect.Failure:
    """Return the usage error, with the clusters that have the pod if that can be found out."""
    from karmada.kube.client.transport import ConnectionFailed
    from karmada.kube.objects.errors import ApiError

    otherwise = " or --all-clusters"
    hint = f"add --cluster NAME{otherwise}"
    if word:
        try:
            async with way.open(namespace) as control:
                hint = await pods.cluster_hint(control, word, otherwise=otherwise)
        except (ApiError, ConnectionFailed, connect.Failure):
            pass  # the missing flag is what the user has to know; the server's problem is the next error
    return connect.failure(f"must specify a cluster: {hint}")


# one cluster


async def _from_one(way: connect.Way, namespace: str, cluster: str, request: Request, output: IO[bytes]) -> None:
    from karmada.cli.targeting import session

    async with (
        way.open(namespace) as control,
        session.member(control, cluster) as member,
    ):
        streams = await streams_of(member, request.wanted)
        if not streams and request.wanted.selector:
            pods.to_stderr(f"No resources found in {member.namespace} namespace.")
        if request.wanted.options.follow and len(streams) > 1:
            if len(streams) > request.most:
                raise TooMany(len(streams), request.most)
            await _all_of(_copy(one, request, output, _prefix(one, request), whole=True) for one in streams)
        else:
            for one in streams:
                await _copy(one, request, output, _prefix(one, request), whole=False)


def _prefix(stream: LogStream, request: Request) -> bytes:
    return stream.prefix(cluster=False) if request.prefix else b""


async def _copy(stream: LogStream, request: Request, output: Sink, prefix: bytes, *, whole: bool) -> None:
    from karmada.kube.client.transport import ConnectionFailed
    from karmada.kube.objects.errors import ApiError

    try:
        await copy(stream, request.wanted.options, output, prefix, whole=whole)
    except (ApiError, ConnectionFailed) as error:
        if not request.ignore_errors:
            raise
        output.write(f"error: {connect.reason(error)}\n".encode())


# several clusters


@dataclass(slots=True)
class Outcome:
    """The results of the clusters so far."""

    streams: int = 0
    failed: bool = False
    unreachable: dict[str, str] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    """Errors of clusters without the named object: they count only if no cluster has it."""

    def what_is_missing(self) -> Missing | None:
        """Return the object, if any of the clusters has at least its namespace."""
        return min(self.missing, key=lambda error: error.is_namespace, default=None)


class TooMany(connect.Failure):
    """More streams than may be followed together."""

    def __init__(self, streams: int, most: int) -> None:
        super().__init__(
            f"error: you are attempting to follow {streams} log streams, but maximum allowed concurrency is {most}, "
            "use --max-log-requests to increase the limit"
        )


async def _from_several(
    way: connect.Way, namespace: str, names: Sequence[str], request: Request, output: IO[bytes]
) -> None:
    from karmada.cli.targeting import session
    from karmada.cli.targeting.unreachable import settle

    outcome = Outcome()
    async with way.open(namespace) as control:
        clusters = await session.chosen_members(control, names)
        await _all_of(_from_cluster(control, cluster, request, output, outcome) for cluster in clusters)
        for cluster, message in (await settle(control, outcome.unreachable, names)).items():
            outcome.failed = True
            pods.to_stderr(f"error: cluster({cluster}): {message}")
    if outcome.failed:
        raise SystemExit(1)
    if not clusters:
        pods.to_stderr("No member Clusters found in Karmada control plane")
    elif not outcome.streams:
        missing = outcome.what_is_missing()
        if missing is not None:
            raise missing
        pods.to_stderr(f"No resources found in {control.namespace} namespace.")


async def _from_cluster(control: Session, cluster: str, request: Request, output: IO[bytes], outcome: Outcome) -> None:
    """Print the logs of one cluster. Its errors are reported at once and do not affect other clusters."""
    from karmada.cli.targeting import session

    with _reported(cluster, outcome):
        async with session.through_proxy(control, cluster) as member:
            streams = await streams_of(member, request.wanted, alone=False)
            outcome.streams += len(streams)
            if request.wanted.options.follow:
                if outcome.streams > request.most:
                    raise TooMany(outcome.streams, request.most)
                await _all_of(_follow_one(stream, request, output, outcome) for stream in streams)
            else:
                await _read_all(streams, request, output)


@contextmanager
def _reported(cluster: str, outcome: Outcome) -> Iterator[None]:
    from karmada.cli.targeting.unreachable import is_unreachable
    from karmada.kube.client.transport import ConnectionFailed
    from karmada.kube.objects.errors import ApiError

    try:
        yield
    except TooMany:
        raise
    except Missing as error:
        outcome.missing.append(error)
    except (ApiError, ConnectionFailed, connect.Failure) as error:
        if is_unreachable(error):
            outcome.unreachable[cluster] = connect.reason(error)
            return
        outcome.failed = True
        pods.to_stderr(f"error: cluster({cluster}): {connect.reason(error)}")


async def _follow_one(stream: LogStream, request: Request, output: IO[bytes], outcome: Outcome) -> None:
    with _reported(stream.session.name, outcome):
        await _copy(stream, request, output, stream.prefix(cluster=True), whole=True)


async def _read_all(streams: Sequence[LogStream], request: Request, output: IO[bytes]) -> None:
    """Kept until it is complete, or as complete as it gets: a cluster's lines stay together."""
    import shutil
    import tempfile

    with tempfile.SpooledTemporaryFile(_KEPT) as kept:
        try:
            for stream in streams:
                await _copy(stream, request, kept, stream.prefix(cluster=True), whole=True)
        finally:
            kept.seek(0)
            shutil.copyfileobj(kept, output)
            output.flush()


async def _all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all at once; the first error ends the others and is the one that is raised."""
    import asyncio

    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except BaseExceptionGroup as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from error.__cause__
