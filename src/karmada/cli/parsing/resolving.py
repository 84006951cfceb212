"""From words to a command: flags may stand before the command they belong to.

Whether a word is the value of the flag before it depends on the command's flags. So for each word that names a command
the command's own flags decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import click

from karmada.cli.commands.options import GLOBAL
from karmada.cli.parsing.flags import FlagSet


@dataclass(frozen=True, slots=True)
class Found:
    """The commands from the root's child on, and what is left of the words when their names are taken out."""

    names: tuple[str, ...]
    commands: tuple[click.Command, ...]
    rest: tuple[str, ...]
    taken: tuple[tuple[str, ...], ...] = ()
    """For every command the words it takes before its subcommand."""

    @property
    def command(self) -> click.Command:
        return self.commands[-1]


class UnknownCommand(Exception):
    def __init__(self, word: str, names: tuple[str, ...], known: Sequence[str]) -> None:
        super().__init__(word)
        self.word, self.names, self.known = word, names, known


def resolve(root: click.Group, args: Sequence[str], *, helping: bool = False) -> Found:
    """Return the innermost command that is named; UnknownCommand when a word stands where a command must.

    With `helping`, the arguments of groups before their subcommands may be left out: help does not need them.
    """
    walk = _Walk(list(args), helping or bool({"-h", "--help"} & set(args)))
    group: click.Group | None = root
    while group is not None:
        group = walk.below(group)
    return Found(
        tuple(walk.names), tuple(walk.commands) or (root,), tuple(walk.rest), tuple(map(tuple, walk.taken)) or ((),)
    )


class _Walk:
    """From the root down."""

    def __init__(self, rest: list[str], helping: bool) -> None:
        self.rest = rest
        self.names: list[str] = []
        self.commands: list[click.Command] = []
        self.taken: list[list[str]] = []
        self._helping = helping

    def below(self, group: click.Group) -> click.Group | None:
        """Return one step; the next group, or None at the end."""
        with click.Context(group) as context:
            find = partial(group.get_command, context)
            if self.commands:
                self._take_arguments(group, find)
            place, word = _place(self.rest, find, [group, *self.commands])
            if word is None:
                return None
            command = find(word)
            if command is None:
                if self.commands and group.invoke_without_command:
                    return None
                raise UnknownCommand(word, tuple(self.names), group.list_commands(context))
        del self.rest[place]
        self.names.append(word)
        self.commands.append(command)
        self.taken.append([])
        return command if isinstance(command, click.Group) else None

    def _take_arguments(self, group: click.Group, find: Callable[[str], click.Command | None]) -> None:
        for _ in [param for param in group.params if isinstance(param, click.Argument)]:
            place, word = _place(self.rest, find, [group, *self.commands])
            if word is not None and not (self._helping and find(word)):
                self.taken[-1].append(self.rest.pop(place))


def _place(
    args: Sequence[str], child: Callable[[str], click.Command | None], above: Sequence[click.Command]
) -> tuple[int, str | None]:
    """Return where the name of a subcommand stands, or the word that stands in its place."""
    shared = FlagSet(*(command.params for command in above), GLOBAL)
    before: str | None = None
    for place, word in enumerate(args):
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            before = word
            continue
        if before is None or not _belongs_to(before, word, shared, child):
            return place, word
        before = None
    return -1, None


def _belongs_to(flag: str, word: str, shared: FlagSet, child: Callable[[str], click.Command | None]) -> bool:
    """Return whether the word is the flag's value."""
    awaits = shared.awaits_word(flag)
    if awaits is not None:
        return awaits
    if flag.startswith("--") and "=" in flag:
        return False
    command = child(word)
    if command is None:
        return True
    return FlagSet(_all_params(command), GLOBAL).awaits_word(flag) is not False


def _all_params(command: click.Command) -> list[click.Parameter]:
    """Return the parameters of a command, with those of its subcommands if it is a group."""
    params = list(command.params)
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                params += inner.params if inner is not None else []
    return params


def suggestions(word: str, known: Sequence[str]) -> list[str]:
    """Return what may have been meant: two letters off, or only begun."""
    small = word.lower()
    return [name for name in sorted(known) if name.startswith(small) or distance(small, name) <= 2]


def distance(one: str, other: str) -> int:
    """Return how many letters must be put in, taken out or changed."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, start=1):
        corner, row[0] = row[0], i
        for j, right in enumerate(other, start=1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (left != right))
    return row[-1]
