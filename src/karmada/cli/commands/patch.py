"""`karmadactl patch`: change fields of resources, with a patch in JSON or YAML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.changing import writing
from karmada.cli.output.printing import Results, print_flags
from karmada.cli.targeting import connect
from karmada.cli.targeting.files import Source, file_flags, read_files
from karmada.cli.targeting.selection import NO_NAME, Chosen, Selection, choose

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.types import Obj

_TYPES = ("json", "merge", "strategic")


@click.command()
@click.argument("words", nargs=-1, metavar="(-f FILENAME | TYPE NAME...) [-p PATCH | --patch-file FILE]")
@file_flags
@click.option("-p", "--patch", "text", default="", help="The patch, in JSON or YAML.")
@click.option("--patch-file", default="", help="The file with the patch.")
@click.option(
    "--type", "type_", default="strategic", show_default=True, help="The kind of patch: json, merge, strategic."
)
@click.option("--local", is_flag=True, help="Patch the objects in the files, without a server.")
@click.option("--subresource", default="", help="Patch this subresource, such as status or scale.")
@writing.dry_run_flag
@writing.manager_flag("kubectl-patch")
@print_flags
@connect.connection_flags
@connect.namespace_flag
def patch(words: tuple[str, ...], **flags: Any) -> None:
    """Change fields of resources with a strategic merge patch, a JSON merge patch or a JSON patch.

    \b
    Examples:
      karmadactl patch deployment web -p '{"spec":{"replicas":3}}'
      karmadactl patch cluster member1 member2 --type=merge -p '{"spec":{"provider":"kind"}}'
      karmadactl patch deployment web --type=json -p '[{"op":"remove","path":"/spec/paused"}]'
    """
    if flags["type_"].lower() not in _TYPES:
        raise connect.failure(f'--type must be one of [{" ".join(_TYPES)}], not "{flags["type_"]}"')
    flags["type_"] = flags["type_"].lower()
    body = _body(flags["text"], flags["patch_file"])
    if flags["local"] and words:
        raise connect.failure("cannot specify --local and server resources")
    sources = read_files(flags["filenames"], flags["kustomize"], flags["recursive"])
    if not words and not flags["filenames"] and not flags["kustomize"]:
        raise connect.failure("must specify one of -f and -k" if flags["local"] else NO_NAME)
    work = _Patching(body, flags)
    if flags["local"]:
        work.local(sources)
    else:
        connect.run(work.run(words, sources))


def _body(text: str, path: str) -> Any:
    if text and path:
        raise connect.failure("cannot specify --patch and --patch-file together")
    if path:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise connect.failure(f"unable to read patch file: open {path}: {reason}") from error
        except UnicodeDecodeError as error:
            raise connect.failure(f"unable to read patch file: {path}: not UTF-8") from error
    if not text:
        raise connect.failure("must specify --patch or --patch-file containing the contents of the patch")
    from karmada.kube.schema.yamlio import load_yaml

    try:
        body = load_yaml(text)
    except ValueError as error:
        reason = str(error).removeprefix("error converting YAML to JSON: ")
        raise connect.failure(f'unable to parse "{text}": {reason}') from error
    if not isinstance(body, dict | list):
        raise connect.failure(f'unable to parse "{text}": a patch is an object, or a list of operations')
    return body


class _Patching:
    def __init__(self, body: Any, flags: dict[str, Any]) -> None:
        self._body, self._flags = body, flags
        self._failures = writing.Failures()
        self._results = Results(flags)

    def local(self, sources: Sequence[Source]) -> None:
        for source in sources:
            with self._failures.collecting():
                self._show(source.obj, patched_here(source.obj, self._body, self._flags["type_"]))
        self._failures.show()

    async def run(self, words: Sequence[str], sources: Sequence[Source]) -> None:

        flags = self._flags
        async with flags["way"].open(flags["namespace"]) as session:
            chosen = await choose(
                session, words, sources, Selection(), self._failures, subresource=flags["subresource"]
            )
            for one in chosen:
                with self._failures.collecting():
                    self._show(one.obj, await self._patched(session, one))
        self._failures.show()

    async def _patched(self, session: Session, one: Chosen) -> Obj:
        flags = self._flags
        if flags["dry_run"] == writing.CLIENT:
            return patched_here(one.obj, self._body, flags["type_"])
        return await session.client.patch(
            one.mapping.gvr,
            one.name,
            one.namespace,
            self._body,
            type=flags["type_"],
            subresource=flags["subresource"],
            dry_run=flags["dry_run"] == writing.SERVER,
            field_manager=flags["field_manager"],
        )

    def _show(self, old: Obj, new: Obj) -> None:
        self._results.show(new, "patched (no change)" if old == new else "patched")


def patched_here(obj: Obj, body: Any, type_: str) -> Obj:
    """Return the object with the patch applied on this side."""
    from karmada.kube.objects.gvk import GVK
    from karmada.kube.patch.jsonpatch import Dialect, JsonPatchError, apply_json_patch
    from karmada.kube.patch.mergepatch import apply_merge_patch
    from karmada.kube.patch.strategic import apply_strategic_merge_patch
    from karmada.kube.schema.builtin import Definitions

    if type_ == "json":
        try:
            new: Obj = apply_json_patch(obj, body, Dialect.LENIENT)
        except JsonPatchError as error:
            raise connect.failure(error.why) from error
        return new
    if type_ == "merge":
        merged: Obj = apply_merge_patch(obj, body)
        return merged
    gvk = GVK.parse(obj["apiVersion"], obj["kind"])
    node = Definitions.load().node_for(gvk)
    if node is None:
        raise connect.failure(f"strategic merge patch is not supported for {gvk} locally, try --type merge")
    return apply_strategic_merge_patch(obj, body, node)
