"""`karmadactl explain`: the documentation of a resource type, from the server's OpenAPI.

The server publishes a document of schemas for every group-version (OpenAPI v3); only the one that is needed is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from karmada.cli.parsing import program
from karmada.cli.targeting import connect
from karmada.cli.targeting.scope import chosen_cluster, one_cluster_flags

if TYPE_CHECKING:
    from karmada.cli.output.schemas import Document, Schema
    from karmada.cli.targeting.session import Session
    from karmada.kube.client.discovery import Catalog, Mapping
    from karmada.kube.objects.gvk import GVK

PLAIN, OLD = "plaintext", "plaintext-openapiv2"
_WIDTH = 80
_SHOWN_VALUES = 4


@click.command()
@click.argument("words", nargs=-1, metavar="TYPE[.FIELD...]")
@connect.connection_flags
@connect.namespace_flag
@one_cluster_flags
@click.option("--recursive", is_flag=True, help="Print the whole tree of fields, without descriptions.")
@click.option("--api-version", default="", help="The group and version to explain, e.g. autoscaling/v1.")
@click.option("-o", "--output", default=PLAIN, show_default=True, help=f"{PLAIN} or {OLD}.")
def explain(
    words: tuple[str, ...],
    way: connect.Way,
    namespace: str,  # noqa: ARG001 - kinds mean the same in all namespaces
    scope: str,
    cluster: str,
    recursive: bool,
    api_version: str,
    output: str,
) -> None:
    """Show the documentation of a resource type and its fields.

    \b
    Examples:
      # A resource type and its fields
      karmadactl explain propagationpolicies
      # One field
      karmadactl explain pp.spec.placement.clusterAffinity
      # The whole tree of fields, without descriptions
      karmadactl explain deployments.spec --recursive
      # Another version than the preferred one
      karmadactl explain hpa --api-version=autoscaling/v1
      # A type that only a member serves
      karmadactl explain guestbooks -s members --cluster member1
    """
    if not words:
        raise connect.failure(
            f'You must specify the type of resource to explain. Use "{program.command()} api-resources" for a '
            "complete list of supported resources."
        )
    if len(words) > 1:
        raise connect.failure("We accept only this format: explain RESOURCE")
    if output not in (PLAIN, OLD):
        raise connect.failure(f"unrecognized format: {output}")
    text = connect.run(_explain(words[0], chosen_cluster(scope, cluster), way, api_version, output, recursive))
    click.echo(text, nl=False)


async def _explain(word: str, cluster: str, way: connect.Way, api_version: str, output: str, recursive: bool) -> str:
    from karmada.cli.output.schemas import NoField

    async with way.server(cluster) as session:
        mapping, path = parse(await session.client.mapper.catalog(), word, api_version)
        document, schema = await _schema(session, mapping.gvk)
    try:
        page = Page(document, mapping.gvk, schema, path)
    except NoField as error:
        if output == PLAIN:
            click.echo("\n".join(heading(mapping.gvk)))
        raise connect.failure(str(error)) from error
    lines = page.plain(recursive) if output == PLAIN else page.old(recursive)
    return "\n".join(lines) + "\n"


def parse(catalog: Catalog, word: str, api_version: str) -> tuple[Mapping, list[str]]:
    """Return the kind and the names of fields behind it; the kind may have its group and version with it."""
    parts = word.removesuffix(".").split(".")
    if any(not part or "[" in part for part in parts):
        raise connect.failure("invalid jsonpath syntax, first node must be field node")
    for length in range(len(parts), 0, -1):
        mapping = catalog.named(".".join(parts[:length]))
        if mapping is not None and (length == 1 or mapping.gvr.group):
            return _of_version(catalog, mapping, api_version), parts[length:]
    raise connect.Failure(f'the server doesn\'t have a resource type "{parts[0]}"')


def _of_version(catalog: Catalog, mapping: Mapping, api_version: str) -> Mapping:
    if not api_version:
        return mapping
    from karmada.kube.objects.gvk import GVR, GroupVersion

    wanted = GVR(*GroupVersion.parse(api_version), mapping.gvr.resource)
    found = catalog.by_gvr.get(wanted)
    if found is None:
        raise connect.failure(f'couldn\'t find resource for "{api_version}, Resource={wanted.resource}"')
    return found


async def _schema(session: Session, gvk: GVK) -> tuple[Document, Schema]:
    """ApiError when the server describes nothing."""
    from karmada.cli.output.schemas import Document
    from karmada.kube.client.limits import LIST_BYTES
    from karmada.kube.client.transport import Call

    transport = session.client.transport
    index = await transport.call(Call("GET", "/openapi/v3"))
    place = f"apis/{gvk.group}/{gvk.version}" if gvk.group else f"api/{gvk.version}"
    entry = ((index or {}).get("paths") or {}).get(place)
    if entry is None:
        raise connect.failure(f'couldn\'t find resource for "{gvk}"')
    path, _, query = str(entry["serverRelativeURL"]).partition("?")
    hashed = dict(pair.split("=", 1) for pair in query.split("&") if "=" in pair)
    document_json = await transport.call(Call("GET", path, hashed, most=LIST_BYTES))
    document = Document(((document_json or {}).get("components") or {}).get("schemas") or {})
    schema = document.of_kind(*gvk)
    if schema is None:
        raise connect.failure(f'couldn\'t find resource for "{gvk}"')
    return document, schema


def heading(gvk: GVK) -> Iterator[str]:
    if gvk.group:
        yield f"GROUP:      {gvk.group}"
    yield f"KIND:       {gvk.kind}"
    yield f"VERSION:    {gvk.version}"
    yield ""


class Page:
    """A kind or one of its fields; NoField for a path that leads nowhere."""

    def __init__(self, document: Document, gvk: GVK, schema: Schema, path: list[str]) -> None:
        self.document = document
        self.gvk = gvk
        self.name = path[-1] if path else ""
        for name in path:
            schema = document.step(schema, name)
        self.schema = schema
        self.fields = document.fields(schema)

    # as it is today

    def plain(self, recursive: bool) -> Iterator[str]:
        yield from heading(self.gvk)
        if self.name:
            yield f"FIELD: {self.name} <{self.document.type_of(self.schema)}>"
            values = _values(self.schema)
            if values:
                yield "ENUM:"
                yield from (f"    {value}" for value in values)
            else:
                yield ""
            yield ""
        yield "DESCRIPTION:"
        yield from self._words("\n".join(self.document.descriptions(self.schema)), 4)
        yield "    "
        if self.fields:
            yield "FIELDS:"
            yield from self._tree(self.schema, 2, self._through(self.schema)) if recursive else self._list()
        yield ""

    def _list(self) -> Iterator[str]:
        required = self.document.required(self.schema)
        for name, field in self.fields.items():
            yield from self._field(name, field, name in required, 2)
            yield from self._words(str(field.get("description") or ""), 4)
            yield ""

    def _field(self, name: str, field: Schema, required: bool, indent: int) -> Iterator[str]:
        blanks = " " * indent
        yield f"{blanks}{name}\t<{self.document.type_of(field)}>{' -required-' if required else ''}"
        values = _values(field)
        if values:
            more = ", ...." if len(values) > _SHOWN_VALUES else ""
            yield f"{blanks}enum: {', '.join(values[:_SHOWN_VALUES])}{more}"

    def _tree(self, schema: Schema, indent: int, above: tuple[str, ...]) -> Iterator[str]:
        """Schemas that have themselves in them are gone into once."""
        required = self.document.required(schema)
        for name, field in self.document.fields(schema).items():
            yield from self._field(name, field, name in required, indent)
            through = self._through(field)
            if not set(through) & set(above):
                yield from self._tree(field, indent + 2, (*above, *through))

    def _through(self, schema: Schema) -> tuple[str, ...]:
        """Return the names of the schemas on the way to its fields."""
        names = []
        while True:
            name = self.document.reference(schema)
            if name:
                names.append(name)
            schema = self.document.resolved(schema)
            inner = schema.get("items") or schema.get("additionalProperties")
            if schema.get("properties") or not isinstance(inner, dict):
                return tuple(names)
            schema = inner

    @staticmethod
    def _words(text: str, indent: int) -> Iterator[str]:
        from karmada.cli.output.schemas import wrap

        for line in wrap(text or "<no description>", _WIDTH - indent):
            yield " " * indent + line

    # as it was

    def old(self, recursive: bool) -> Iterator[str]:
        yield f"KIND:     {self.gvk.kind}"
        yield f"VERSION:  {self.gvk.api_version}"
        yield ""
        if self.name:
            sort = self.document.plain_type_of(self.schema)
            yield f"{'RESOURCE:' if self.fields else 'FIELD:   '} {self.name} <{sort}>"
            yield ""
        yield "DESCRIPTION:"
        yield from self._old_words("\n\n".join(self.document.descriptions(self.schema)), 5)
        if not self.fields:
            return
        yield ""
        yield "FIELDS:"
        if recursive:
            yield from self._old_tree(self.schema, 3, self._through(self.schema))
            return
        required = self.document.required(self.schema)
        for name, field in self.fields.items():
            mark = " -required-" if name in required else ""
            yield f"   {name}\t<{self.document.plain_type_of(field)}>{mark}"
            yield from self._old_words(str(field.get("description") or ""), 5)
            yield ""

    def _old_tree(self, schema: Schema, indent: int, above: tuple[str, ...]) -> Iterator[str]:
        for name, field in self.document.fields(schema).items():
            yield f"{' ' * indent}{name}\t<{self.document.plain_type_of(field)}>"
            through = self._through(field)
            if not set(through) & set(above):
                yield from self._old_tree(field, indent + 3, (*above, *through))

    @staticmethod
    def _old_words(text: str, indent: int) -> Iterator[str]:
        from karmada.cli.output.schemas import wrap

        for line in wrap(re.sub(" +", " ", text), _WIDTH - indent) if text else ():
            yield f"{' ' * indent}{line}" if line else ""


def _values(schema: Schema) -> list[str]:
    return [str(value) for value in schema.get("enum") or ()]
