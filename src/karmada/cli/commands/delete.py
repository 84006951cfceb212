"""`karmadactl delete`: delete resources by file, name or label, and wait until they are gone.

The server may keep a deleted object for its finalizers or its dependents. Each is watched from the resourceVersion of a
list, so that its deletion cannot be missed; another uid under the same name counts as deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.changing import writing
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import file_flags, read_files
from karmada.cli.targeting.selection import NOTHING_GIVEN, Chosen, Selection, choose

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.types import Obj

_CASCADES = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}
_OLD_CASCADES = {"true": "background", "false": "orphan"}
_FORCED = (
    "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. "
    "The resource may continue to run on the cluster indefinitely."
)
_NOT_SCOPED = "Warning: deleting cluster-scoped resources, not scoped to the provided namespace"


class _Cascade(click.ParamType[str]):
    name = "background|foreground|orphan"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        word = str(value)
        if word in _OLD_CASCADES:
            meant = _OLD_CASCADES[word]
            text = f"--cascade={word} is deprecated (boolean value) and can be replaced with --cascade={meant}."
            click.echo(f"warning: {text}", err=True)
            word = meant
        if word not in _CASCADES:
            raise connect.failure(f'invalid cascade value ({word}). Must be "background", "foreground", or "orphan"')
        return word


@click.command()
@click.argument("words", nargs=-1, metavar="([-f FILENAME] | TYPE [(NAME | -l label | --all)])")
@file_flags
@click.option("--all", "all_", is_flag=True, help="All resources of the type in the namespace.")
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option(
    "--cascade",
    type=_Cascade(),
    is_flag=False,
    flag_value="background",
    default="background",
    show_default=True,
    help="How dependents are deleted: background, foreground (before the resource) or orphan (not at all).",
)
@click.option("--field-selector", default="", help="Only resources that match this field selector.")
@click.option("--force", is_flag=True, help="Remove the resource from the API at once, without graceful termination.")
@click.option("--grace-period", type=int, default=-1, help="Seconds that the resource gets to terminate gracefully.")
@click.option("--ignore-not-found", is_flag=True, help="Do not fail when a resource does not exist.")
@click.option("-i", "--interactive", is_flag=True, help="Ask for confirmation before deleting.")
@click.option("--now", is_flag=True, help="Use a grace period of one second.")
@click.option("-o", "--output", default="", help="Output format: name.")
@click.option("--raw", default="", help="Send a DELETE to this path of the server.")
@click.option("-l", "--selector", default="", help="Only resources with these labels.")
@click.option("--timeout", type=connect.Duration(), default=0.0, help="How long to wait; 0 waits without limit.")
@click.option("--wait", is_flag=True, default=True, help="Wait until the resources are gone.")
@writing.dry_run_flag
@connect.connection_flags
@connect.namespace_flag
def delete(words: tuple[str, ...], **flags: Any) -> None:
    """Delete resources by file, by name, or by label.

    \b
    Examples:
      karmadactl delete -f web.yaml
      karmadactl delete deployment web
      karmadactl delete pods,services -l app=web
      karmadactl delete propagationpolicies --all -n shop
    """
    _check(flags)
    if flags["raw"]:
        if words or len(flags["filenames"]) > 1:
            raise connect.failure("--raw can only use a single local file or stdin")
        connect.run(_raw(flags))
        return
    sources = read_files(flags["filenames"], flags["kustomize"], flags["recursive"])
    if not words and not flags["filenames"] and not flags["kustomize"]:
        raise connect.failure(NOTHING_GIVEN)
    if flags["force"] and flags["grace_period"] <= 0:
        click.echo(_FORCED, err=True)
    connect.run(_Deletion(flags).run(words, sources))


def _check(flags: dict[str, Any]) -> None:
    if flags["output"] not in ("", "name"):
        raise connect.failure(f"unexpected -o output mode: {flags['output']}. We only support '-o name'")
    if flags["all_"] and flags["selector"]:
        raise connect.failure("setting 'all' parameter but found a non empty selector. ")
    if flags["now"]:
        if flags["grace_period"] >= 0:
            raise connect.failure("--now and --grace-period cannot be specified together")
        flags["grace_period"] = 1
    if flags["force"] and flags["grace_period"] > 0:
        raise connect.failure("--force and --grace-period greater than 0 cannot be specified together")
    if flags["force"]:
        flags["grace_period"] = 0
    elif flags["grace_period"] == 0:
        flags["grace_period"] = 1  # whoever really wants nothing to be waited for says --force


async def _raw(flags: dict[str, Any]) -> None:

    async with flags["way"].open() as session:
        await writing.raw(session.client, "DELETE", flags["raw"])


class _Deletion:
    def __init__(self, flags: dict[str, Any]) -> None:
        self._flags = flags
        self._failures = writing.Failures()

    async def run(self, words: Sequence[str], sources: Sequence[Any]) -> None:

        flags = self._flags
        selection = Selection(flags["all_"], flags["all_namespaces"], flags["selector"], flags["field_selector"])
        chosen: list[Chosen] = []
        self._forgiving = flags["ignore_not_found"] or bool(selection)
        async with flags["way"].open(flags["namespace"]) as session:
            if words or sources:
                chosen = await choose(session, words, sources, selection, self._failures, fetch=False)
            self._warn_of_scope(session, chosen)
            if chosen and flags["interactive"] and not self._confirmed(chosen):
                click.echo("deletion is cancelled")
                return
            deleted = [(one, await self._delete(session, one)) for one in chosen]
            if not chosen and not self._failures and not flags["ignore_not_found"]:
                click.echo("No resources found")
            if flags["wait"] and flags["dry_run"] == writing.NONE:
                await self._wait(session, [(one, uid) for one, uid in deleted if uid])
        self._failures.show()

    def _warn_of_scope(self, session: Session, chosen: Sequence[Chosen]) -> None:
        if session.namespace_given and any(not one.mapping.namespaced for one in chosen):
            click.echo(_NOT_SCOPED, err=True)

    @staticmethod
    def _confirmed(chosen: Sequence[Chosen]) -> bool:
        import sys

        click.echo(f"You are about to delete the following {len(chosen)} resource(s):")
        for one in chosen:
            click.echo(f"{_kind(one)}/{one.name}")
        click.echo("Do you want to continue? (y/n): ", nl=False)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    async def _delete(self, session: Session, one: Chosen) -> str:
        """Return the uid of the deleted object; "" when nothing was deleted."""
        from karmada.kube.objects.errors import NotFound

        flags = self._flags
        uid = ""
        with self._failures.collecting("deleting", one.source):
            if flags["dry_run"] != writing.CLIENT:
                try:
                    answer = await session.client.delete(
                        one.mapping.gvr,
                        one.name,
                        one.namespace,
                        propagation=_CASCADES[flags["cascade"]],
                        grace_period=flags["grace_period"] if flags["grace_period"] >= 0 else None,
                        dry_run=flags["dry_run"] == writing.SERVER,
                    )
                except NotFound:
                    if self._forgiving:
                        return ""
                    raise
                uid = _uid(answer) or _uid(one.obj)
            self._report(one)
        return uid

    def _report(self, one: Chosen) -> None:
        if self._flags["output"] == "name":
            click.echo(f"{_kind(one)}/{one.name}")
            return
        word = "force deleted" if self._flags["grace_period"] == 0 else "deleted"
        click.echo(f'{_kind(one)} "{one.name}" {writing.did(word, self._flags["dry_run"])}')

    async def _wait(self, session: Session, deleted: Sequence[tuple[Chosen, str]]) -> None:
        import asyncio

        timeout = self._flags["timeout"] or None
        waits = await asyncio.gather(
            *(asyncio.wait_for(_gone(session, one, uid), timeout) for one, uid in deleted), return_exceptions=True
        )
        for (one, _), answer in zip(deleted, waits, strict=True):
            with self._failures.collecting():
                if isinstance(answer, TimeoutError):
                    place = f"{one.mapping.gvr.resource}/{one.name}"
                    raise connect.failure(f"timed out waiting for the condition on {place}")
                if isinstance(answer, BaseException):
                    raise answer


def _kind(one: Chosen) -> str:
    return str(one.mapping.gvk.group_kind).lower()


def _uid(answer: Obj) -> str:
    """Return the uid in an object, or in the Status of its deletion."""
    status = answer.get("kind") == "Status" and answer.get("apiVersion") == "v1"
    place: Obj = answer.get("details" if status else "metadata") or {}
    return str(place.get("uid", ""))


async def _gone(session: Session, one: Chosen, uid: str) -> None:
    """Return once the server has no object of this name with this uid; a watch that ends is begun anew."""
    from contextlib import aclosing

    from karmada.kube.objects.errors import Expired, Forbidden, Gone, MethodNotAllowed

    only = f"metadata.name={one.name}"
    while True:
        try:
            listed = await session.client.list(one.mapping.gvr, one.namespace, field_selector=only)
            if all(obj["metadata"].get("uid") != uid for obj in listed.get("items") or ()):
                return
            version = listed["metadata"].get("resourceVersion", "")
            events = await session.client.watch(
                one.mapping.gvr, one.namespace, field_selector=only, resource_version=version
            )
            async with aclosing(events) as stream:  # type: ignore[type-var]
                async for event in stream:
                    same = event.object["metadata"].get("uid") == uid
                    if event.type != "BOOKMARK" and (event.type == "DELETED") == same:
                        return
        except (Expired, Gone):
            continue
        except (Forbidden, MethodNotAllowed):
            return  # who may not look cannot wait
