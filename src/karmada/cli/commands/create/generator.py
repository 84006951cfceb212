"""What all `create THING NAME` commands share: each only says what object its flags mean.

`generator` turns a function from NAME and flags to an object (or to a coroutine function where the server is needed)
into a command. Dry run, printing, field manager and validation are handled here. A client-side dry run needs no server
and no kubeconfig, unless the object does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from karmada.cli.changing import writing
from karmada.cli.output.printing import FLAGS, Results, print_flags
from karmada.cli.parsing.after_dashes import AfterDashes
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.types import Obj

MANAGER = "kubectl-create"
Recipe: TypeAlias = "Obj | Callable[[Session], Awaitable[Obj]]"
_COMMON = ("way", "namespace", "dry_run", "field_manager", "save_config", "validate")


@dataclass(frozen=True, slots=True)
class Settings:
    """The flags of every generator."""

    way: connect.Way
    namespace: str
    dry_run: str
    field_manager: str
    save_config: bool
    validate: str
    results: Results

    @classmethod
    def taken_from(cls, flags: dict[str, Any]) -> Settings:
        """Take them out of all flags; what is left are the command's own."""
        results = Results({name: flags.pop(name) for name in FLAGS})
        return cls(results=results, **{name: flags.pop(name) for name in _COMMON})

    def print(self, obj: Obj) -> None:
        self.results.show(obj, writing.did("created", self.dry_run))


def write_flags(command: Any) -> Any:
    """--save-config, --validate, --dry-run, --field-manager, and where to."""
    for flags in (
        connect.namespace_flag,
        connect.connection_flags,
        print_flags,
        writing.manager_flag(MANAGER),
        writing.dry_run_flag,
        writing.validate_flag,
        writing.save_config_flag,
    ):
        command = flags(command)
    return command


def generator(
    resource: str, *, namespaced: bool = True, word: str = "", required: Sequence[str] = ()
) -> Callable[[Callable[..., Recipe]], click.Command]:
    """Return a command for `resource` (GROUP/VERSION/PLURAL); `word` is what errors call it, else the command's name.

    `required` are the flags without which nothing can be made.
    """
    *group, version, plural = resource.split("/")

    def make(recipe: Callable[..., Recipe]) -> click.Command:
        name = recipe.__name__.replace("_", "-")

        def run(names: tuple[str, ...], **flags: Any) -> None:
            settings = Settings.taken_from(flags)
            missing = [f'"{flag}"' for flag in required if not flags[flag.replace("-", "_")]]
            if missing:
                raise connect.failure(f"required flag(s) {', '.join(missing)} not set")
            if len(names) != 1:
                raise connect.usage(f"exactly one NAME is required, got {len(names)}")
            made = recipe(names[0], **flags)
            place = (group[0] if group else "", version, plural)
            _finish(settings, made, place, namespaced, word or name)

        run.__doc__ = recipe.__doc__
        run.__click_params__ = getattr(recipe, "__click_params__", [])  # type: ignore[attr-defined]
        command = write_flags(run)
        command = click.argument("names", nargs=-1, metavar="NAME")(command)
        return click.command(name, cls=AfterDashes)(command)

    return make


def _finish(settings: Settings, made: Recipe, place: tuple[str, str, str], namespaced: bool, word: str) -> None:
    if settings.dry_run == writing.CLIENT and not callable(made):
        settings.print(_completed(settings, made, namespaced))
    else:
        settings.print(connect.run(_create(settings, made, place, namespaced, word)))


def _completed(settings: Settings, obj: Obj, namespaced: bool) -> Obj:
    """With the requested namespace and, with --save-config, the last-applied annotation."""
    if namespaced and settings.namespace:
        obj = {**obj, "metadata": {**obj["metadata"], "namespace": settings.namespace}}
    return writing.with_last_applied(obj, generated=True) if settings.save_config else obj


async def _create(settings: Settings, made: Recipe, place: tuple[str, str, str], namespaced: bool, word: str) -> Obj:
    from karmada.kube.objects.errors import ApiError
    from karmada.kube.objects.gvk import GVR

    async with settings.way.open(settings.namespace) as session:
        obj = await made(session) if callable(made) else made
        obj = _completed(settings, obj, namespaced)
        if settings.dry_run == writing.CLIENT:
            return obj
        try:
            return await session.client.create(
                GVR(*place),
                obj,
                session.namespace if namespaced else "",
                dry_run=settings.dry_run == writing.SERVER,
                field_manager=settings.field_manager,
                field_validation=settings.validate,
            )
        except ApiError as error:
            raise connect.failure(f"failed to create {word}: {error.message}") from error


def split_commas(values: tuple[str, ...]) -> list[str]:
    """Return the values of a flag that may be repeated, and may have several between commas."""
    return [word for value in values for word in value.split(",")]
