"""The table of images that run as processes: which program stands for an image, and which commands may be run in it.

Only programs of this table are ever started. A pattern is matched with the full name of an image (docker.io/library/…);
one without a tag matches every tag. Of the rules that match, the last one counts, so that a user's file overrides the
built-in rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from karmada.kube.schema.yamlio import load_yaml
from karmada.kube.sim.kubelet.images import full_name


class ImageRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """`command` takes the place of the image's entry point; `commands` are further programs, by name."""

    image: str
    command: tuple[str, ...]
    commands: dict[str, tuple[str, ...]] = {}
    resolve_names: bool = False
    """Replace cluster names in arguments and environment by addresses, for programs that cannot look them up."""

    def __post_init__(self) -> None:
        if not self.image or not self.command or not all((self.command[0], *self.commands.values())):
            raise ValueError(f'image "{self.image}": command needs at least the name of a program')

    def matches(self, name: str) -> bool:
        """`name` is the full name of an image."""
        repository = name.partition("@")[0]
        if ":" not in self.image.rpartition("/")[2]:
            path, slash, last = repository.rpartition("/")
            repository = f"{path}{slash}{last.partition(':')[0]}"
        return fnmatchcase(repository, self._pattern)

    @cached_property
    def _pattern(self) -> str:
        """Written as in a pod: `nginx` is docker.io/library/nginx."""
        if self.image.startswith("*"):
            return self.image
        named = full_name(self.image)
        return named if ":" in self.image.rpartition("/")[2] else named.removesuffix(":latest")

    def programs(self, image: str) -> dict[str, tuple[str, ...]]:
        """Return what can run in a container of an image, by name: the entry point under the last part of its name."""
        return {image.partition("@")[0].rpartition("/")[2].partition(":")[0]: self.command, **self.commands}


class ImageTable:
    def __init__(self, rules: Iterable[ImageRule] = ()) -> None:
        self.rules = tuple(rules)
        self._found: dict[str, ImageRule | None] = {}

    def of(self, image: str) -> ImageRule | None:
        """Return the rule of an image; None if containers of it are simulated."""
        if image not in self._found:
            name = full_name(image)
            self._found[image] = next((rule for rule in reversed(self.rules) if rule.matches(name)), None)
        return self._found[image]


class ImageFileError(ValueError):
    """A file of image rules that cannot be used; the message names the file and the entry."""


def read_rules(path: Path) -> list[ImageRule]:
    """Return the rules of a YAML file: image pattern → argv, or → a mapping with the fields of ImageRule."""
    try:
        entries = load_yaml(path.read_text()) or {}
    except OSError as error:
        raise ImageFileError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ImageFileError(f"{path}: {error}") from error
    if not isinstance(entries, dict):
        raise ImageFileError(f"{path}: not a mapping of image patterns to commands")
    return [_rule(path, str(image), entry) for image, entry in entries.items()]


def _rule(path: Path, image: str, entry: Any) -> ImageRule:
    fields = entry if isinstance(entry, dict) else {"command": entry}
    try:
        return msgspec.convert({**fields, "image": image}, ImageRule)
    except ValueError as error:
        expected = "expected a list such as [/usr/bin/redis-server]"
        raise ImageFileError(f'{path}: image "{image}": {error} ({expected})') from error
