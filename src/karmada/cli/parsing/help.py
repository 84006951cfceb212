"""Help in kubectl's layout: what it does, examples, subcommands, options, usage.

The text is a command's docstring. What stands in it from the line `Examples:` on is the examples; the marks that keep
click from filling paragraphs are taken out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

import click

from karmada.cli.parsing import program
from karmada.cli.parsing.catalog import GROUPS, HIDDEN
from karmada.cli.parsing.flags import default_text, shown_name

_EXAMPLES = re.compile(r"^(?:\x08\n)?Examples?:\n", re.MULTILINE)
_WIDTH = 16
"""Width of the column with names of commands; longer names get a wider one."""
_NO_TERMINAL = 100
"""How wide help is when it does not go to a terminal."""


def text(command: click.Command, path: tuple[str, ...], above: Sequence[click.Command] = ()) -> str:
    """`path` is the names after the program's, `above` are the groups that the command is in."""
    about, examples = parts(command)
    sections = [about]
    if examples:
        sections.append(f"Examples:\n{examples}")
    if isinstance(command, click.Group):
        sections += _command_sections(command, root=not path)
    if path:
        own = options_text(option for option in command.params if isinstance(option, click.Option))
        sections += [f"Options:\n{own}"] if own else []
    sections += [f"Usage:\n  {_usage(command, path, above)}", "\n".join(_hints(command, path))]
    return "\n\n".join(sections)


def parts(command: click.Command) -> tuple[str, str]:
    """Return what the command does, and its examples, indented."""
    text = program.in_own_words(inspect.cleandoc(command.help or ""))
    about, _, examples = _split(text)
    return _plain(about).strip("\n"), _plain(examples).strip("\n")


def _split(text: str) -> tuple[str, str, str]:
    found = _EXAMPLES.search(text)
    return (text, "", "") if found is None else (text[: found.start()], found[0], text[found.end() :])


def _plain(text: str) -> str:
    return re.sub(r"^\x08\n", "", text, flags=re.MULTILINE)


def _command_sections(group: click.Group, root: bool) -> list[str]:
    if root:
        headings = {
            heading or "Further Commands": [
                (name, summary) for name, (_, summary) in rows.items() if name not in HIDDEN
            ]
            for heading, rows in GROUPS.items()
        }
    else:
        headings = {"Available Commands": summaries(group)}
    width = max((len(name) + 1 for rows in headings.values() for name, _ in rows), default=0)
    return [
        "\n".join([f"{heading}:", *(f"  {name:<{max(width, _WIDTH)}}{summary}" for name, summary in rows)])
        for heading, rows in headings.items()
        if rows
    ]


def summaries(group: click.Group) -> list[tuple[str, str]]:
    """Return the commands of a group, each with the first sentence of its help."""
    found = []
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None and not command.hidden:
                found.append((name, _first_line(command)))
    return found


def _first_line(command: click.Command) -> str:
    first = " ".join(parts(command)[0].partition("\n\n")[0].split())
    return command.short_help or re.split(r"(?<=[.:;]) ", first)[0].rstrip(".:;")


def options_text(options: Iterable[click.Option]) -> str:
    shown = [option for option in options if not option.hidden]
    shown.sort(key=lambda option: shown_name(option).rpartition("--")[2])
    return "\n\n".join(_option(option) for option in shown)


def _option(option: click.Option) -> str:
    from textwrap import wrap

    about = wrap(program.in_own_words(" ".join((option.help or "").split())), _columns())
    names = sorted(option.opts, key=lambda name: name.startswith("--"))
    lines = "".join(f"\n\t{line}" for line in about)
    return f"    {', '.join(names)}={default_text(option)}:{lines}"


def _columns() -> int:
    """Return how long a line about an option may be, after its indent."""
    from shutil import get_terminal_size

    return min(max(get_terminal_size((_NO_TERMINAL, 0)).columns, 60), 120) - 8


def _usage(command: click.Command, path: tuple[str, ...], above: Sequence[click.Command]) -> str:
    if not path:
        return f"{program.binary()} [command] [options]"
    words = [program.binary()]
    for name, group in zip_longest(path[:-1], above):
        words += [name, *_arguments(group)]
    words += [path[-1], *_arguments(command)]
    if isinstance(command, click.Group):
        words.append("[SUBCOMMAND]" if command.invoke_without_command else "SUBCOMMAND")
    words.append("[options]" if command.options_metavar in (None, "[OPTIONS]") else str(command.options_metavar))
    return " ".join(word for word in words if word)


def _arguments(command: click.Command | None) -> list[str]:
    """Return what goes between a group's name and those of its commands, or after a command's."""
    params = command.params if command is not None else []
    return [metavar(argument) for argument in params if isinstance(argument, click.Argument)]


def metavar(argument: click.Argument) -> str:
    if argument.metavar is not None:
        return argument.metavar
    name = (argument.name or "").upper()
    return f"{name}..." if argument.nargs == -1 else name


def _hints(command: click.Command, path: tuple[str, ...]) -> list[str]:
    typed = program.command()
    if not isinstance(command, click.Group):
        return [f'Use "{typed} options" for a list of global command-line options (applies to all commands).']
    below = " ".join([typed, *path])
    return [
        f'Use "{below} <command> --help" for more information about a given command.',
        f'Use "{typed} options" for a list of global command-line options (applies to all commands).',
    ]
