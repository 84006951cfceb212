"""The command line of a container's process: what the table and the pod say, with the paths of the pod's own folder.

As in a container runtime `command` replaces the image's entry point and `args` its arguments; here the entry point, and
whatever `command` names, is a program of the table. References $(NAME) are expanded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from karmada.kube.objects.types import Obj
from karmada.kube.sim.kubelet.container_environment import expanded
from karmada.kube.sim.processes.images import ImageRule

_WILDCARD = re.compile(r"(?<![0-9.])0\.0\.0\.0(?![0-9.]|/)|\[::\]")
_NAME = re.compile(r"(?<![\w.-])[a-z0-9](?:[a-z0-9.-]*)\.svc(?:\.cluster\.local)?(?![\w.-])")
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
    """The program and its arguments; UnknownCommand."""
    values = dict(env)
    command = [expanded(word, values) for word in container.get("command") or ()]
    arguments = [expanded(word, values) for word in container.get("args") or ()]
    program = rule.command if not command else known_program(rule, str(container.get("image") or ""), command[0])
    return (*program, *(translate(word) for word in (*command[1:], *arguments)))


def known_program(rule: ImageRule, image: str, name: str) -> tuple[str, ...]:
    """The program for a command that calls it `name`, a path or a plain name; UnknownCommand."""
    programs = rule.programs(image)
    program = programs.get(name.rpartition("/")[2])
    if program is None:
        raise UnknownCommand(
            f'exec: "{name}": containers of {image} run as processes, which can run only '
            f"{', '.join(sorted(programs))} (--process-images adds commands)"
        )
    return program


def translated_env(env: Mapping[str, str], translate: Translation) -> dict[str, str]:
    return {name: translate(value) for name, value in env.items()}
