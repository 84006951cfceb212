"""How commands connect to API servers and report errors.

Two ways to find a kubeconfig: the control plane's is found as kubectl finds it ($KUBECONFIG may name several files),
a member's is one file, or else the account of the pod the command runs in. A command's work is a coroutine, run here;
whatever fails in it is one line on stderr and exit code 1. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterator

    from karmada.cli.targeting.session import Session
    from karmada.kube.client.client import Client
    from karmada.kube.client.config import RestConfig

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
USER_AGENT = "karmadactl"
CONNECT_SECONDS = 10.0
"""Seconds to wait for a connection."""
_LOGGED_FROM = 6
"""The verbosity from which on requests are logged."""
_SILENT_MEMBER = re.compile(r"/clusters/([^/]+)/proxy: (no response .*)")
_MISSING = (
    "missing or incomplete configuration info{missing}. Please point to an existing, complete config file: "
    "1. Via the command-line flag {flag}; 2. Via the KUBECONFIG environment variable; "
    "3. In your home directory as ~/.kube/config"
)


class Failure(click.ClickException):
    """A failure as it is shown: the text, and nothing around it."""

    def show(self, file: Any = None) -> None:
        click.echo(self.message, file=file, err=file is None)


def failure(message: str) -> Failure:
    return Failure(f"error: {message}")


def usage(message: str) -> Failure:
    """Return a failure with a pointer to the help."""
    path = click.get_current_context().command_path
    return failure(f"{message}\nSee '{path} -h' for help and examples")


# flags


@dataclass(frozen=True, slots=True)
class Way:
    """The way to the control plane, as the flags say."""

    kubeconfig: str = ""
    context: str = ""

    def config(self) -> RestConfig:
        return control_config(self.kubeconfig, self.context)

    def open(self, namespace: str = "") -> AbstractAsyncContextManager[Session]:
        """Connect to the control plane; `namespace` as the flag says."""
        return self.server("", namespace)

    def server(self, cluster: str, namespace: str = "") -> AbstractAsyncContextManager[Session]:
        """Connect to the member, or with "" to the control plane."""
        from karmada.cli.targeting.session import one_server

        return one_server(self.kubeconfig, self.context, cluster, namespace)


def connection_flags(command: Callable[..., T]) -> Callable[..., T]:
    """--kubeconfig and --karmada-context: which control plane; the command gets its `way`."""

    @wraps(command)
    def packed(*args: Any, kubeconfig: str, karmada_context: str, **given: Any) -> T:
        return command(*args, way=Way(kubeconfig, karmada_context), **given)

    for option in (
        click.option("--karmada-context", default="", help="The context to use in the kubeconfig."),
        click.option("--kubeconfig", default="", help="The kubeconfig of the control plane."),
    ):
        packed = option(packed)
    return packed


def namespace_flag(command: F) -> F:
    """--namespace: where namespaced resources are; the kubeconfig's namespace when it is not given."""
    return click.option("-n", "--namespace", default="", help="The namespace.")(command)


def member_flags(command: F) -> F:
    """--cluster-kubeconfig and --cluster-context: which member."""
    for option in (
        click.option("--cluster-context", default="", help="The context to use in the cluster's kubeconfig."),
        click.option("--cluster-kubeconfig", default="", help="The kubeconfig of the cluster."),
    ):
        command = option(command)
    return command


def membership_flags(command: Callable[..., T]) -> Callable[..., T]:
    """Return what join and unjoin have in common: the cluster's name, both kubeconfigs, and where its Secrets are."""
    for option in (
        dry_run_flag,
        click.option(
            "--cluster-namespace",
            default="karmada-cluster",
            show_default=True,
            help="The namespace in the control plane for the Secrets of the cluster.",
        ),
        member_flags,
        connection_flags,
        click.argument("names", nargs=-1, metavar="CLUSTER_NAME"),
    ):
        command = option(command)
    return command


def dry_run_flag(command: F) -> F:
    return click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")(command)


class Duration(click.ParamType[float]):
    """As Go writes them; in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from karmada.kube.objects.times import parse_duration

        if isinstance(value, float):
            return value
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def one_name(names: tuple[str, ...], too_many: str) -> str:
    """Return the name of a cluster, when exactly one is given."""
    if not names or not names[0]:
        raise failure("cluster name is required")
    if len(names) > 1:
        raise failure(too_many)
    return names[0]


def commas(values: Iterable[str]) -> list[str]:
    """Return the values of a flag that may be repeated, and may have several between commas."""
    return [part for value in values for part in value.split(",") if part]


def check_name(name: str, what: str = "resource name") -> None:
    """Failure for a name that would lead to another path than its own."""
    wrong = [f"may not be '{name}'"] if name in (".", "..") else []
    wrong += [f"may not contain '{character}'" for character in "/%" if character in name]
    if wrong:
        raise failure(f'invalid {what} "{name}": [{" ".join(wrong)}]')


# kubeconfigs


def control_config(kubeconfig: str = "", context: str = "") -> RestConfig:
    """Return the way to the control plane: the flag's file, or those of $KUBECONFIG together, or ~/.kube/config."""
    from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError, default_paths

    path = Path(kubeconfig).expanduser() if kubeconfig else None
    try:
        if path is None and not any(found.exists() for found in default_paths()):
            raise failure(_MISSING.format(flag="--kubeconfig", missing=""))
        return Kubeconfig.load(path).resolve(context)
    except KubeconfigError as error:
        raise failure(_unreadable(str(error), [path] if path else default_paths())) from error


def _unreadable(problem: str, paths: Sequence[Path]) -> str:
    """Return what is wrong with a kubeconfig, in kubectl's words."""
    for path in paths:
        what = problem.removeprefix(f"{path}: ")
        if what == problem:
            continue
        if what == os.strerror(errno.ENOENT):
            return f"stat {path}: no such file or directory"
        if what == os.strerror(errno.EACCES):
            what = f"open {path}: permission denied"
        return f'error loading config file "{path}": {what.removeprefix("error converting YAML to JSON: ")}'
    return problem


def joining_context(kubeconfig: str, context: str, cluster: str) -> str:
    """Return the context to join `cluster` with: of several in a file, none of which was chosen, that of the same name.

    The current context of such a file is often another cluster's, which must not be joined under this name.
    """
    from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError

    path = Path(kubeconfig).expanduser()
    if context or not kubeconfig or not path.exists():
        return context
    try:
        names = sorted(Kubeconfig.load(path).contexts)
    except KubeconfigError as error:
        raise failure(_unreadable(str(error), [path])) from error
    if len(names) < 2:
        return context
    if cluster not in names:
        raise failure(
            f'{kubeconfig} has several contexts and none is called "{cluster}": choose one with --cluster-context '
            f"({', '.join(names)})"
        )
    return cluster


def member_config(kubeconfig: str = "", context: str = "", *, flag: str = "--cluster-kubeconfig") -> RestConfig:
    """Return the way to a member: one file, or the account of the pod this runs in."""
    from karmada.kube.client.incluster import NotInCluster, in_cluster_config
    from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError

    path = Path(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config").expanduser()
    try:
        if path.exists():
            return Kubeconfig.load(path).resolve(context)
        if os.environ.get("KUBERNETES_SERVICE_HOST") or os.environ.get("KUBERNETES_SERVICE_PORT"):
            return in_cluster_config()
    except (KubeconfigError, NotInCluster) as error:
        raise failure(
            f"failed to get joining cluster config. context: {context}, kube-config: {path}, error: {error}"
        ) from error
    raise failure(_MISSING.format(flag=flag, missing=f" ({path} does not exist)"))


# work


@asynccontextmanager
async def _connected(config: RestConfig, *, warnings: bool) -> AsyncIterator[Client]:
    from dataclasses import replace

    from karmada.kube.client.client import Client
    from karmada.kube.client.http_transport import HttpTransport

    transport = HttpTransport(replace(config, user_agent=USER_AGENT, connect_timeout=CONNECT_SECONDS))
    if warnings:
        transport.on_warning = _warner()
    client = Client(_logged(transport), field_manager=USER_AGENT)
    try:
        yield client
    finally:
        await client.close()


def _logged(transport: Any) -> Any:
    """Return the transport, wrapped to log requests if the verbosity demands it."""
    from karmada.kube.runtime.logging import verbosity

    if verbosity() < _LOGGED_FROM:
        return transport
    from karmada.cli.targeting.logged import LoggedTransport

    return LoggedTransport(transport)


def _warner() -> Callable[[str], None]:
    """Show what a server warns of, each warning once."""
    shown: set[str] = set()

    def warn(text: str) -> None:
        if text not in shown:
            shown.add(text)
            click.echo(f"Warning: {text}", err=True)

    return warn


def connected(config: RestConfig, *, warnings: bool = True) -> AbstractAsyncContextManager[Client]:
    """Yield a client, which is closed at the end of the block; with `warnings`, what the server warns of is shown."""
    return _connected(config, warnings=warnings)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do the work of a command; Failure with one line for whatever goes wrong."""
    import asyncio

    from karmada.kube.client.transport import ConnectionFailed
    from karmada.kube.objects.errors import ApiError

    try:
        with refusals():
            return asyncio.run(work)
    except BrokenPipeError:  # of standard output; those of a server are ConnectionFailed
        raise
    except ApiError as error:
        raise Failure(describe(error)) from error
    except ConnectionFailed as error:
        member, why = _silent_member(error)
        raise (failure(f"cluster({member}): {why}") if member else Failure(_unreachable(error))) from error
    except OSError as error:
        raise failure(_of_system(error)) from error


@contextmanager
def refusals() -> Iterator[None]:
    """Turn an error that is a text for people into a failure of the command."""
    from karmada.kube.objects.errors import UserError

    try:
        yield
    except UserError as error:
        raise failure(str(error)) from error


def reason(error: BaseException) -> str:
    """Return the message without prefixes, for errors that are reported with their place."""
    from karmada.kube.client.transport import ConnectionFailed
    from karmada.kube.objects.errors import ApiError

    if isinstance(error, ApiError):
        return error.message
    if isinstance(error, ConnectionFailed):
        return _silent_member(error)[1] or _unreachable(error)
    if isinstance(error, Failure):
        return error.message.removeprefix("error: ")
    if isinstance(error, OSError):
        return _of_system(error)
    raise error


def _of_system(error: OSError) -> str:
    """Without the errno; time-outs are OSErrors, too."""
    if not error.strerror:
        return str(error) or type(error).__name__
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def describe(error: Any) -> str:
    """Return an error of a server, as kubectl shows it."""
    if error.http_code == 401:
        return f"error: You must be logged in to the server ({error.message})"
    if error.status_reason == "Invalid":
        details = error.details
        named = details.get("kind") or details.get("name")
        what = f'The {details.get("kind", "")} "{details.get("name", "")}"' if named else "The request"
        return f"{what} is invalid: {_causes(error)}"
    reason = f" ({error.status_reason})" if error.status_reason else ""
    return f"Error from server{reason}: {error.message}"


def _causes(error: Any) -> str:
    causes = [f"{cause['field']}: {cause['message']}" for cause in error.causes]
    if not causes:
        return str(error.message)
    return causes[0] if len(causes) == 1 else "".join(f"\n* {cause}" for cause in causes)


def _unreachable(error: Exception) -> str:
    """Return the error of a server that gave no answer, in kubectl's words where it has any."""
    import socket
    import ssl

    server, _, why = str(error).partition(": ")
    host = server.partition("://")[2] or server
    cause = _innermost(error)
    if getattr(cause, "errno", None) == errno.ECONNREFUSED or isinstance(cause, ConnectionRefusedError):
        return f"The connection to the server {host} was refused - did you specify the right host or port?"
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = f"tls: failed to verify certificate: x509: {_distrust(cause)}"
    elif isinstance(cause, socket.gaierror):
        why = f"dial tcp: lookup {host.partition('/')[0].rpartition(':')[0] or host}: no such host"
    elif "no connection within" in why:
        why = f"dial tcp {host}: i/o timeout ({why})"
    else:
        why = f"{server}: {why}"
    return f"Unable to connect to the server: {why}"


def _silent_member(error: Exception) -> tuple[str, str]:
    """Return the member that did not respond in time, and the message; the proxy itself is not the problem."""
    found = _SILENT_MEMBER.search(str(error))
    return (found[1], found[2]) if found else ("", "")


def _innermost(error: BaseException) -> BaseException:
    """Return what an error came from, in the end: HTTP libraries wrap the system's errors."""
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error.__cause__
    return error if inner is None or inner is error else _innermost(inner)


_EXPIRED, _WRONG_NAME, _WRONG_ADDRESS = 10, 62, 64


def _distrust(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == _EXPIRED:
        return "certificate has expired or is not yet valid"
    if error.verify_code in (_WRONG_NAME, _WRONG_ADDRESS):
        return error.verify_message.rstrip(".")
    return f"certificate signed by unknown authority ({error.verify_message})"


def progress(step: str) -> None:
    """Print a progress line."""
    import sys

    if sys.stderr.isatty():
        click.echo(step, err=True)
