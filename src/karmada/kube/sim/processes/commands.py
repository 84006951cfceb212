"""The command line of a container's process: what the table and the pod say, with the paths of the pod's own folder.

As in a container runtime `command` replaces the image's entry point and `args` its arguments; here the entry point, and
whatever `command` names, is a program of the table. References $(NAME) are expanded. There is no shell, unless the
table has one: of `sh -c SCRIPT` the one command is run that the script consists of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from karmada.kube.objects.types import Obj
from karmada.kube.sim.kubelet.container_environment import expanded
from karmada.kube.sim.kubelet.shell import SHELLS
from karmada.kube.sim.kubelet.shell_grammar import Sequence as Script
from karmada.kube.sim.kubelet.shell_grammar import Simple, parse
from karmada.kube.sim.kubelet.shell_words import ScriptError, Word
from karmada.kube.sim.processes.images import ImageRule

_WILDCARD = re.compile(r"(?<![0-9.])0\.0\.0\.0(?![0-9.]|/)|\[::\]")
_NAME = re.compile(r"(?<![\w.-])[a-z0-9](?:[a-z0-9.-]*)\.svc(?:\.cluster\.local)?(?![\w.-])")
_SCRIPT_FLAG = re.compile("-[aeux]*c")
_PATTERN = re.compile(r"[*?\[]|^~")
"""Characters that make a shell take a word for names of files."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_BEFORE, _AFTER = r"(?<![^=,:;\s'\"\[@])", r"(?=[/,:;\s'\"\]]|$)"


class UnknownCommand(Exception):
    """A command that the table does not allow in a container."""


class Translation:
    """Replaces mount paths in texts by where the volumes are on this machine, wildcard addresses by the pod's own.

    A path counts where a text begins or after one of = , : ; and the like, and only as a whole or as the beginning of a
    longer path: so `--kubeconfig=/etc/a/config` and `/etc/a,/etc/b` are translated, `https://host/etc/a` is not. A
    program that is to listen on 0.0.0.0 would otherwise be open to the network of this machine. `resolve`, if given,
    returns the address of a cluster name, or nothing.
    """

    def __init__(
        self, root: str, mount_paths: Iterable[str], address: str, resolve: Callable[[str], str] | None = None
    ) -> None:
        self._root = root
        self._address = address
        self._resolve = resolve
        paths = sorted({path.rstrip("/") for path in mount_paths} - {""}, key=len, reverse=True)
        self._paths = re.compile(f"{_BEFORE}({'|'.join(map(re.escape, paths))}){_AFTER}") if paths else None

    def __call__(self, text: str) -> str:
        if self._address:
            text = _WILDCARD.sub(self._address, text)
        if self._resolve is not None:
            resolve = self._resolve
            text = _NAME.sub(lambda match: resolve(match[0]) or match[0], text)
        return text if self._paths is None else self._paths.sub(lambda match: self._root + match[1], text)


def command_line(rule: ImageRule, container: Obj, env: Mapping[str, str], translate: Translation) -> tuple[str, ...]:
    """Return the program and its arguments; UnknownCommand."""
    values = dict(env)
    command = [expanded(word, values) for word in container.get("command") or ()]
    arguments = [expanded(word, values) for word in container.get("args") or ()]
    if command:
        return known_command(rule, str(container.get("image") or ""), [*command, *arguments], env, translate)
    return (*rule.command, *map(translate, arguments))


def known_command(
    rule: ImageRule, image: str, command: Sequence[str], env: Mapping[str, str], translate: Translation
) -> tuple[str, ...]:
    """Return the program of the table, and its arguments, that a command line calls; UnknownCommand."""
    programs = rule.programs(image)
    if command and _last_part(command[0]) not in programs:
        command = without_shell(command, env)
    name = command[0] if command else ""
    program = programs.get(_last_part(name))
    if program is None:
        raise UnknownCommand(
            f'exec: "{name}": containers of {image} run as processes, which can run only '
            f"{', '.join(sorted(programs))} (--process-images adds commands)"
        )
    return (*program, *map(translate, command[1:]))


def _last_part(path: str) -> str:
    return path.rpartition("/")[2]


def without_shell(command: Sequence[str], env: Mapping[str, str]) -> Sequence[str]:
    """Return the command of `sh -c SCRIPT`, its words resolved; UnknownCommand where a shell is needed."""
    if len(command) < 3 or _last_part(command[0]) not in SHELLS or not _SCRIPT_FLAG.fullmatch(command[1]):
        return command
    script, arguments = command[2], command[3:]
    values = {**env, **{str(number): word for number, word in enumerate(arguments)}}
    try:
        words = [text for word in _only_command(parse(script)).words for text in _texts(word, values)]
    except ScriptError as error:
        raise UnknownCommand(f'exec: "{command[0]}": {error}: a pod that runs as a process has no shell') from None
    words = words[1:] if words[:1] == ["exec"] else words
    if not words or _ASSIGNMENT.match(words[0]):
        raise UnknownCommand(
            f'exec: "{command[0]}": {script!r} is no command: a pod that runs as a process has no shell'
        )
    return words


def _only_command(script: Script) -> Simple:
    if len(script.items) == 1:
        [(_, pipeline)] = script.items
        [first, *others] = pipeline.commands
        if isinstance(first, Simple) and not (others or first.redirections or pipeline.negated):
            return first
    raise ScriptError("the script is more than one command")


def _texts(word: Word, values: Mapping[str, str]) -> list[str]:
    """Return a word with its variables; what is not quoted may become several, or none."""
    texts = [""]
    for piece in word.pieces:
        if piece.kind not in ("text", "variable"):
            raise ScriptError("the script has substitutions")
        if piece.kind == "text" and not piece.quoted and _PATTERN.search(piece.text):
            raise ScriptError("the script has patterns of files")
        value = piece.text if piece.kind == "text" else values.get(piece.text) or piece.default
        first, *others = [value] if piece.quoted or piece.kind == "text" else value.split() or [""]
        texts[-1] += first
        texts += others
    quoted = any(piece.quoted for piece in word.pieces)
    return texts if quoted or texts != [""] else []


def translated_env(env: Mapping[str, str], own: Mapping[str, str], translate: Translation) -> dict[str, str]:
    """Return what the pod says, translated; the runtime's own variables have the paths of this machine."""
    return {name: value if own.get(name) == value else translate(value) for name, value in env.items()}
