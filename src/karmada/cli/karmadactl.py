"""`karmadactl`, and `kubectl karmada`: the command line of the control plane.

A command is found first (resolving), then all words are read with its flags (flags), and only then click is given
them. Whatever goes wrong on the way or in the command comes to one place, which says it in one line on standard error.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from karmada.cli.commands.options import GLOBAL
from karmada.cli.parsing import help as help_text
from karmada.cli.parsing import program
from karmada.cli.parsing.catalog import COMMANDS
from karmada.cli.parsing.flags import FlagError, FlagSet, Reading, shown_name
from karmada.cli.parsing.resolving import Found, UnknownCommand, resolve, suggestions
from karmada.loading import collect_rarely

_INTERRUPTED = 130
_EXTRA = re.compile(r"^Got unexpected extra arguments? \((.*)\)$")
_QUIET_GROUPS = frozenset({"addons", "token"})
"""They show their help when the subcommand is missing or unknown, and that is no failure."""
_STRICT_GROUPS = frozenset({"create", "top"})
"""Without a subcommand they fail: `create secret`, `top`."""


class _Refused(Exception):
    """A command line that cannot be followed; the lines that say why."""


class Karmadactl(click.Group):
    """The root command; its commands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        entry = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(entry.module), entry.attribute)
        return command

    def main(self, args: Sequence[str] | None = None, *_unused: Any, **_settings: Any) -> NoReturn:
        collect_rarely()
        words = list(sys.argv[1:] if args is None else args)
        _prepare_streams()
        _leave(_guarded(self, words))


def _guarded(root: click.Group, words: list[str]) -> int:
    """Run the command line and return the exit code."""
    try:
        code = _dispatch(root, words)
        sys.stdout.flush()
    except _Refused as refusal:
        click.echo(f"error: {refusal}", err=True)
        return 1
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _INTERRUPTED
    except BrokenPipeError:
        return 1
    except click.ClickException as error:
        click.echo(_shown(error), err=True)
        return error.exit_code if not isinstance(error, click.UsageError) else 1
    except OSError as error:  # from writing output: commands report their own
        from karmada.cli.targeting.connect import reason

        click.echo(f"error: {reason(error)}", err=True)
        return 1
    return code


def _prepare_streams() -> None:
    """Open streams that were closed before the start to nowhere; write UTF-8 whatever the locale."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the end
        elif mode == "w" and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8")


def _leave(code: int) -> NoReturn:
    """Exit; a closed pipe is no error, and a full disk has been reported before."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _dispatch(root: click.Group, words: list[str]) -> int:
    if words[:1] == ["__complete"]:
        from karmada.cli.parsing.complete import print_completions

        print_completions(root, words[1:])
        return 0
    _check_text(words)
    if words == ["--version"]:
        words = ["version"]
    wants_help = words[:1] == ["help"]
    try:
        found = resolve(root, words[1:] if wants_help else words, helping=wants_help)
    except UnknownCommand as unknown:
        return _unknown(root, unknown)
    reading = _read(found)
    _warn_of_underscores(reading)
    if wants_help or reading.help or found.command is root:
        click.echo(help_text.text(found.command, found.names, found.commands[:-1]))
        return 0
    if isinstance(found.command, click.Group) and not found.command.invoke_without_command:
        return _show_group(found)
    if isinstance(found.command, click.Group) and reading.words:
        raise _Refused(f"Unexpected args: [{' '.join(reading.words)}]\n{_see(found.names, '-h')}")
    _set_up_logging(reading)
    return _invoke(root, found, reading)


def _check_text(words: Sequence[str]) -> None:
    """Refuse text that is not UTF-8, which no server takes; Python marks such bytes as halves of characters."""
    for word in words:
        if not word.isascii() and any("\ud800" <= character <= "\udfff" for character in word):
            raise _Refused(f"not UTF-8: {word!a}")


def _unknown(root: click.Group, unknown: UnknownCommand) -> int:
    if unknown.names and unknown.names[0] in _QUIET_GROUPS:
        found = resolve(root, unknown.names, helping=True)
        click.echo(help_text.text(found.command, found.names, found.commands[:-1]))
        return 0
    if unknown.names:
        raise _Refused(f'unknown command "{unknown.word}"\n{_see(unknown.names, "-h")}')
    meant = suggestions(unknown.word, unknown.known)
    hint = "".join(["\n\nDid you mean this?", *(f"\n\t{name}" for name in meant), "\n"]) if meant else ""
    raise _Refused(f'unknown command "{unknown.word}" for "{program.command()}"{hint}')


def _show_group(found: Found) -> int:
    """Show the help of a group that was called alone, which some count as a mistake."""
    mistake = found.names[0] in _STRICT_GROUPS
    click.echo(help_text.text(found.command, found.names, found.commands[:-1]), err=mistake)
    return int(mistake)


def _read(found: Found) -> Reading:
    """Return the words with the flags of the command, those of the groups above it, and those of all commands."""
    command = found.command
    settings = command.context_settings
    flags = FlagSet(*(level.params for level in reversed(found.commands)), GLOBAL)
    interspersed = command.allow_interspersed_args or isinstance(command, click.Group)
    try:
        return flags.read(
            found.rest,
            interspersed=bool(settings.get("allow_interspersed_args", interspersed)),
            lenient=bool(settings.get("ignore_unknown_options", command.ignore_unknown_options)),
        )
    except FlagError as error:
        raise _Refused(f"{error}\n{_see(found.names, '--help')}") from None


def _see(names: Sequence[str], flag: str) -> str:
    path = " ".join([program.command(), *names])
    return f"See '{path} {flag}' for {'usage.' if flag == '--help' else 'help and examples'}"


def _warn_of_underscores(reading: Reading) -> None:
    for flag in reading.underscored:
        meant = flag.replace("_", "-")
        click.echo(f"Warning: {flag} was read as {meant}: names of flags have dashes, not underscores", err=True)


def _set_up_logging(reading: Reading) -> None:
    given = {option.name: reading.values[option][-1] for option in GLOBAL if option in reading.values}
    given.pop("kubeconfig", None)
    if given:
        from karmada.cli.parsing.verbosity import set_up

        set_up({str(name): value for name, value in given.items()})


def _invoke(root: click.Group, found: Found, reading: Reading) -> int:
    words: list[str] = []
    for name, command, taken in zip(found.names, found.commands, found.taken, strict=True):
        words += [name, *reading.flags_of(command), *taken]
    words += reading.positional()
    outer = click.Context(root, info_name=program.command(), default_map=_turned_off(found, reading))
    try:
        with outer, found.commands[0].make_context(found.names[0], words[1:], parent=outer) as context:
            result = found.commands[0].invoke(context)
    except click.UsageError as error:
        raise _Refused(_misused(error, found, reading)) from error
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def _turned_off(found: Found, reading: Reading) -> dict[str, Any]:
    """Defaults for click, command within command: it has no words for these."""
    defaults: dict[str, Any] = {}
    for name, command in zip(reversed(found.names), reversed(found.commands), strict=True):
        own = {str(option.name): False for option in reading.off if option in command.params}
        defaults = {name: {**defaults, **own}}
    return defaults


# what went wrong


def _shown(error: click.ClickException) -> str:
    from karmada.cli.targeting.connect import Failure

    return error.message if isinstance(error, Failure) else f"error: {error.format_message()}"


def _misused(error: click.UsageError, found: Found, reading: Reading) -> str:
    option = error.param if isinstance(error, click.BadParameter) else None
    if isinstance(error, click.MissingParameter):
        text = _missing(option)
    elif isinstance(option, click.Option) and option in reading.values:
        text = f'invalid argument "{_culprit(option, reading)}" for "{shown_name(option)}" flag: {error.message}'
        return f"{text}\n{_see(found.names, '--help')}"
    else:
        text = _EXTRA.sub(r"unexpected arguments: [\1]", error.format_message())
    return f"{text}\n{_see(found.names, '-h')}"


def _missing(what: click.Parameter | None) -> str:
    if isinstance(what, click.Option):
        return f'required flag(s) "{shown_name(what).rpartition("--")[2]}" not set'
    return f"{help_text.metavar(what)} is required" if isinstance(what, click.Argument) else "something is missing"


def _culprit(option: click.Option, reading: Reading) -> str:
    """Return which of a flag's values it was."""
    *others, last = reading.values[option]
    for value in others if option.multiple else ():
        try:
            option.type.convert(value, option, None)
        except click.BadParameter:
            return value
    return last


@click.command(cls=Karmadactl)
def main() -> None:
    """karmadactl looks after a multi-cluster control plane, its members, and what runs in them."""


if __name__ == "__main__":
    main()
