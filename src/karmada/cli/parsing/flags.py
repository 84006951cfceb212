"""Parses command lines as kubectl does.

Click defines a command's flags; this module parses all their spellings: `-n=x`, `-nx`, `--watch=false`, a flag whose
value may be left out, underscores for dashes, with kubectl's error messages. The result is rewritten in the one form
that click and kubectl parse alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class FlagError(Exception):
    """An error of a command line, with kubectl's message."""


def is_switch(option: click.Option) -> bool:
    """Return whether the flag is on or off, which `=true` and `=false` may say."""
    return isinstance(option.type, click.types.BoolParamType)


def takes_word(option: click.Option) -> bool:
    """Return whether the flag, written without `=`, takes the next word."""
    return not (option.is_flag or option.count or is_switch(option) or _may_stand_alone(option))


def _may_stand_alone(option: click.Option) -> bool:
    return bool(getattr(option, "_flag_needs_value", False))


def shown_name(option: click.Option) -> str:
    """`-n, --namespace`, as errors have it."""
    return ", ".join(_primary(option))


def _primary(option: click.Option) -> list[str]:
    """Return one short and one long name, of those the flag has."""
    short = [name for name in option.opts if not name.startswith("--")]
    long = [name for name in option.opts if name.startswith("--")]
    return short[:1] + long[:1]


@dataclass(slots=True)
class Reading:
    """A command line that was understood."""

    given: dict[click.Option, list[str]] = field(default_factory=dict)
    """The flags, in the form that click reads as well."""
    values: dict[click.Option, list[str]] = field(default_factory=dict)
    """Values of the flags as they were written; "true" for flags without a value."""
    off: set[click.Option] = field(default_factory=set)
    """Switches that were turned off and have no name for that."""
    words: list[str] = field(default_factory=list)
    dash: int | None = None
    """How many of the words stand before `--`."""
    help: bool = False
    underscored: list[str] = field(default_factory=list)
    """Flags with underscores for dashes."""

    def flags_of(self, command: click.Command) -> list[str]:
        return [part for option, parts in self.given.items() if option in command.params for part in parts]

    def positional(self) -> list[str]:
        if self.dash is None:
            return self.words
        return [*self.words[: self.dash], "--", *self.words[self.dash :]]


class FlagSet:
    """The flags of a command and those that every command has; the command's own come first."""

    def __init__(self, *levels: Iterable[click.Parameter]) -> None:
        self.options: list[click.Option] = []
        self._names: dict[str, click.Option] = {}
        self._off: dict[str, click.Option] = {}
        for level in levels:
            for option in level:
                if isinstance(option, click.Option):
                    self._add(option)

    def _add(self, option: click.Option) -> None:
        free = [name for name in option.opts if name not in self._names and name not in self._off]
        if not free:
            return
        self.options.append(option)
        self._names.update((name, option) for name in free)
        self._off.update((name, option) for name in option.secondary_opts)

    def find(self, name: str) -> click.Option | None:
        return self._names.get(name) or self._off.get(name)

    def awaits_word(self, token: str) -> bool | None:
        """Return whether a flag as it stands on a command line takes the next word; None when it is not one of them."""
        if token.startswith("--"):
            option = self.find(_long(token))
            return None if option is None else "=" not in token and takes_word(option)
        for place, letter in enumerate(token[1:], start=1):
            option = self.find(f"-{letter}")
            if option is None:
                return False if letter == "h" else None
            if takes_word(option):
                return place == len(token) - 1
        return False

    def read(self, args: Sequence[str], *, interspersed: bool = True, lenient: bool = False) -> Reading:
        """FlagError when kubectl would not understand it either; `lenient` takes unknown flags for words."""
        return _Reader(self, list(args), interspersed, lenient).read()


def _long(token: str) -> str:
    name = token.partition("=")[0]
    return "--" + name[2:].replace("_", "-")


class _Reader:
    def __init__(self, flags: FlagSet, args: list[str], interspersed: bool, lenient: bool) -> None:
        self._flags = flags
        self._left = args[::-1]
        self._interspersed = interspersed
        self._lenient = lenient
        self._reading = Reading()

    def read(self) -> Reading:
        reading = self._reading
        while self._left:
            token = self._left.pop()
            if token == "--":
                reading.dash = len(reading.words)
                reading.words += self._left[::-1]
                break
            if token.startswith("--"):
                self._read_long(token)
            elif token.startswith("-") and token != "-":
                self._read_short(token)
            else:
                reading.words.append(token)
                if not self._interspersed:
                    reading.words += self._left[::-1]
                    break
        return reading

    def _read_long(self, token: str) -> None:
        if token[2] in "-=":
            raise FlagError(f"bad flag syntax: {token}")
        written, equals, value = token.partition("=")
        name = _long(token)
        option = self._flags.find(name)
        if option is None:
            if name == "--help":
                self._reading.help = _truth(value, "-h, --help") if equals else True
            elif self._lenient:
                self._reading.words.append(token)
            else:
                raise FlagError(f"unknown flag: {written}")
            return
        if written != name:
            self._reading.underscored.append(written)
        if equals:
            self._set(option, name, value)
        elif not takes_word(option):
            self._set(option, name, None)
        elif self._left:
            self._set(option, name, self._left.pop())
        else:
            raise FlagError(f"flag needs an argument: {written}")

    def _read_short(self, token: str) -> None:
        rest = token[1:]
        while rest:
            letter, rest = rest[0], rest[1:]
            option = self._flags.find(f"-{letter}")
            if option is None:
                if letter == "h":
                    self._reading.help = True
                    continue
                if self._lenient:
                    self._reading.words.append(f"-{letter}{rest}")
                    return
                raise FlagError(f"unknown shorthand flag: '{letter}' in -{letter}{rest}")
            if rest.startswith("="):
                self._set(option, f"-{letter}", rest[1:])
                return
            if not takes_word(option):
                self._set(option, f"-{letter}", None)
                continue
            if rest:
                self._set(option, f"-{letter}", rest)
            elif self._left:
                self._set(option, f"-{letter}", self._left.pop())
            else:
                raise FlagError(f"flag needs an argument: '{letter}' in {token}")
            return

    def _set(self, option: click.Option, name: str, value: str | None) -> None:
        """`value` None: written without one."""
        given = self._reading.given
        self._reading.values.setdefault(option, []).append("true" if value is None else value)
        if is_switch(option):
            on = value is None or _truth(value, shown_name(option))
            given[option] = self._switched(option, on if name in option.opts else not on)
            return
        if value is not None and (option.is_flag or option.count):
            raise FlagError(f'invalid argument "{value}" for "{shown_name(option)}" flag: it takes no value')
        if value is not None:
            _check_number(option, value)
        before = given.get(option, []) if option.multiple or option.count else []
        given[option] = [*before, *_spelled(option, value)]

    def _switched(self, option: click.Option, on: bool) -> list[str]:
        self._reading.off.discard(option)
        if not option.is_flag:
            return _spelled(option, "true" if on else "false")
        if on:
            return [_primary(option)[-1]]
        if option.secondary_opts:
            return [option.secondary_opts[0]]
        self._reading.off.add(option)
        return []


def _spelled(option: click.Option, value: str | None) -> list[str]:
    name = _primary(option)[-1]
    if value is None and _may_stand_alone(option):
        value = str(option.flag_value)
    if value is None:
        return [name]
    return [f"{name}={value}"] if name.startswith("--") else [name, value]


def _truth(value: str, name: str) -> bool:
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise FlagError(_no_number(value, name, "ParseBool"))


def _check_number(option: click.Option, value: str) -> None:
    for kind, read, go in _NUMBERS:
        if isinstance(option.type, kind):
            try:
                read(value)
            except ValueError:
                raise FlagError(_no_number(value, shown_name(option), go)) from None


_NUMBERS: tuple[tuple[type, Callable[[str], object], str], ...] = (
    (click.types.IntParamType, int, "ParseInt"),
    (click.types.FloatParamType, float, "ParseFloat"),
)


def _no_number(value: str, name: str, go: str) -> str:
    return f'invalid argument "{value}" for "{name}" flag: strconv.{go}: parsing "{value}": invalid syntax'


def default_text(option: click.Option) -> str:
    """Return what a flag is without being given, as help shows it."""
    default: Any = option.default
    if isinstance(option.show_default, str):
        return option.show_default
    if is_switch(option):
        return "true" if default is True else "false"
    if option.multiple:
        values = default if isinstance(default, tuple | list) else ()
        return f"[{','.join(map(str, values))}]"
    if not isinstance(default, str | int | float) and not hasattr(default, "__fspath__"):
        return "''" if not isinstance(option.type, click.types.IntParamType) else "0"
    if option.type.name == "duration":
        return f"{default:g}s" if isinstance(default, int | float) else str(default)
    return str(default) if isinstance(default, int | float) else f"'{default}'"
