"""Completion: `karmadactl __complete WORD… LAST`, for shell scripts and for kubectl.

One candidate per line, with a tab and a description if there is one; a last line `:N` holds the directive, 2 for "no
space" and 4 for "no file names". A shell waits for the result: requests have short time-outs, and an error is an empty
result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, field
from typing import Any

import click

from karmada.cli.commands.options import GLOBAL
from karmada.cli.parsing import help as help_text
from karmada.cli.parsing import resolving
from karmada.cli.parsing.catalog import COMMANDS, HIDDEN
from karmada.cli.parsing.flags import FlagSet, Reading
from karmada.kube.objects.shapes import METADATA

_FILES, _NO_SPACE, _NO_FILES = 0, 2, 4
TIMEOUT_SECONDS = 3.0
"""After this time the result is empty."""
_AHEAD = (click.Option(["--karmada-context"]), click.Option(["-n", "--namespace"]))
"""Flags that most commands take, and that may stand before the command."""


@dataclass(slots=True)
class Completion:
    candidates: list[tuple[str, str]] = field(default_factory=list)
    """Each with a few words about it, or none."""
    directive: int = _NO_FILES

    def lines(self) -> Iterator[str]:
        for value, about in self.candidates:
            yield f"{value}\t{about}" if about else value
        yield f":{self.directive}"


def main() -> None:
    """`kubectl_complete-karmada`: kubectl's completion of its plug-in."""
    from karmada.cli.karmadactl import main as root

    print_completions(root, sys.argv[1:])


def print_completions(root: click.Group, words: Sequence[str]) -> None:
    """Complete, and print the result; errors give an empty one."""
    found = Completion()
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere), suppress(Exception):
        found = complete(root, words)
    click.echo("\n".join(found.lines()))


def complete(root: click.Group, words: Sequence[str]) -> Completion:
    *before, current = words or [""]
    if before[:1] == ["help"]:
        before = before[1:]
    found = resolving.resolve(root, before)
    levels = found.commands if found.names else ()
    flags = FlagSet(*(level.params for level in reversed(levels)), GLOBAL if levels else (*GLOBAL, *_AHEAD))
    if "--" in found.rest:
        return Completion(directive=_FILES)
    if found.rest and found.rest[-1].startswith("-") and flags.awaits_word(found.rest[-1]):
        given, flag = list(found.rest[:-1]), found.rest[-1]
        return _Completer(found, flags.read(given, lenient=True)).value(_option(flags, flag), current)
    completer = _Completer(found, flags.read(found.rest, lenient=True))
    if current.startswith("--") and "=" in current:
        name, _, begun = current.partition("=")
        answer = completer.value(_option(flags, name), begun)
        return Completion([(f"{name}={value}", about) for value, about in answer.candidates], answer.directive)
    if current.startswith("-"):
        return Completion(_starting(current, _flag_names(flags)))
    return completer.word(root, current)


def _option(flags: FlagSet, token: str) -> click.Option | None:
    return flags.find(token) or flags.find(f"-{token[-1]}")


def _flag_names(flags: FlagSet) -> Iterator[tuple[str, str]]:
    yield "--help", "Show help"
    for option in flags.options:
        if not option.hidden:
            for name in option.opts:
                if name.startswith("--") and len(name) > len("--x"):
                    yield name, (option.help or "").partition(". ")[0].rstrip(".")


def _starting(begun: str, candidates: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(pair for pair in candidates if pair[0].startswith(begun))


def _plain(begun: str, values: Iterable[str], directive: int = _NO_FILES) -> Completion:
    return Completion([(value, "") for value in values if value.startswith(begun)], directive)


_OUTPUTS = ("json", "yaml", "kyaml", "name", "jsonpath=", "go-template=", "custom-columns=")
_TABLE_OUTPUTS = {"get": ("wide", *_OUTPUTS), "search": ("wide", *_OUTPUTS), "api-resources": ("wide", "name")}
_CLUSTER_COMMANDS = frozenset({"unjoin", "unregister", "cordon", "uncordon", "orphans"})
_TYPED_COMMANDS = frozenset(
    {"get", "describe", "delete", "edit", "label", "annotate", "patch", "why", "render", "promote"}
)
_POD_COMMANDS = frozenset({"logs", "exec", "attach"})
_ADDONS = (
    "all",
    "karmada-dashboard",
    "karmada-descheduler",
    "karmada-metrics-adapter",
    "karmada-scheduler-estimator",
    "karmada-search",
)


class _Completer:
    def __init__(self, found: resolving.Found, reading: Reading) -> None:
        self._found = found
        self._words = reading.words
        self._given = {str(option.name): values[-1] for option, values in reading.values.items()}

    # flags

    def value(self, option: click.Option | None, begun: str) -> Completion:
        if option is None:
            return Completion()
        name = max(option.opts, key=len).lstrip("-")
        if name in ("cluster", "clusters"):
            return _in_list(begun, _run_request(self._clusters()))
        if name == "namespace":
            return _plain(begun, _run_request(self._names("namespaces")))
        if name in ("kind", "owner") and self._found.names[0] == "search":
            return self._searched(name, begun)
        if name.endswith("context"):
            return _plain(begun, self._contexts(name))
        if name in ("filename", "kustomize", "template") or name.endswith(("config", "file", "dir", "path")):
            return Completion(directive=_FILES)
        if isinstance(option.type, click.Path | click.File):
            return Completion(directive=_FILES)
        if name == "output":
            return _outputs(self._found.names[0], begun)
        return _plain(begun, _choices(option))

    def _searched(self, flag: str, begun: str) -> Completion:
        """Kinds in a list, or the kind of an owner, after which its name is typed."""
        types = _run_request(self._types())
        if flag == "kind":
            return _in_list(begun, types)
        return _plain(begun, [f"{kind}/" for kind in types], _NO_FILES | _NO_SPACE)

    def _contexts(self, flag: str) -> Iterable[str]:
        """Return the contexts of the kubeconfig that goes with the flag: --cluster-kubeconfig for --cluster-context."""
        from karmada.kube.client.kubeconfig import Kubeconfig

        owner = flag.removesuffix("context").replace("-", "_")
        path = self._given.get(f"{owner}kubeconfig") or self._given.get("kubeconfig")
        return sorted(Kubeconfig.load(os.path.expanduser(path) if path else None).contexts)

    # words

    def word(self, root: click.Group, begun: str) -> Completion:
        command, name = self._found.command, (self._found.names or ("",))[0]
        if command is root:
            return Completion(_starting(begun, ((n, e.summary) for n, e in COMMANDS.items() if n not in HIDDEN)))
        if name == "sim" and self._lacks_cluster(command):
            return _plain(begun, self._simulated())
        if isinstance(command, click.Group):
            return Completion(_starting(begun, help_text.summaries(command)))
        if name == "top":
            return _plain(begun, [] if self._words else _run_request(self._names(f"{command.name}s")))
        if name in _CLUSTER_COMMANDS:
            return _plain(begun, [] if self._words else _run_request(self._clusters()))
        if name == "taint":
            return _plain(begun, _run_request(self._clusters()) if self._words else ["cluster", "clusters"])
        if name in _TYPED_COMMANDS:
            return self._resource(begun)
        if name == "explain":
            return _plain(begun, _run_request(self._types()) if not self._words else [])
        if name in _POD_COMMANDS:
            return _plain(begun, [] if self._words else _run_request(self._names("pods")))
        if name == "completion":
            from karmada.cli.commands.completion import SCRIPTS

            return _plain(begun, [] if self._words else SCRIPTS)
        if self._found.names[:2] in (("addons", "enable"), ("addons", "disable")):
            return _plain(begun, _ADDONS)
        return Completion(directive=_FILES if name in ("backup", "restore") else _NO_FILES)

    def _lacks_cluster(self, command: click.Command) -> bool:
        """Return whether the next word is to name a simulated cluster, which exists."""
        if command.name == "fail":
            return not self._found.taken[-1]
        return command.name == "delete" or (command.name in ("heal", "load", "scale") and not self._words)

    def _simulated(self) -> list[str]:
        from karmada.kube.client.kubeconfig import Kubeconfig

        [option] = [option for option in self._found.commands[0].params if option.name == "data_dir"]
        folder = os.path.expanduser(self._given.get("data_dir") or str(option.default))
        return sorted(set(Kubeconfig.load(os.path.join(folder, "members.config")).contexts) - set(self._words))

    def _resource(self, begun: str) -> Completion:
        """TYPE[,TYPE…] and then names, or TYPE/NAME."""
        if "/" in begun:
            kind, _, start = begun.partition("/")
            return Completion(
                [(f"{kind}/{name}", "") for name in _run_request(self._names(kind)) if name.startswith(start)]
            )
        if not self._words:
            return _in_list(begun, _run_request(self._types()))
        if any("/" in word for word in self._words):
            return Completion()
        taken = self._words[1:]
        return _plain(begun, (name for name in _run_request(self._names(self._words[0])) if name not in taken))

    # servers

    async def _clusters(self) -> list[str]:
        from karmada.cli.targeting import session

        async with session.control_plane(*self._way()) as control:
            return await session.chosen_members(control)

    async def _types(self) -> list[str]:
        from karmada.cli.targeting import session

        async with session.control_plane(*self._way()) as control, self._place(control) as place:
            catalog = await place.client.mapper.catalog()
            return sorted({mapping.gvr.resource for mapping in catalog.mappings if mapping.allows("list")})

    async def _names(self, types: str) -> list[str]:
        from karmada.cli.targeting import session
        from karmada.cli.targeting.resources import resource_types

        async with session.control_plane(*self._way()) as control, self._place(control) as place:
            catalog = await place.client.mapper.catalog()
            names: list[str] = []
            for mapping in (mapping for word in types.split(",") for mapping in resource_types(catalog, word)):
                namespace = place.namespace if mapping.namespaced else ""
                listed = await place.client.list_all(mapping.gvr, namespace, shape=METADATA)
                names += [item["metadata"]["name"] for item in listed.items]
            return names

    def _place(self, control: Any) -> Any:
        """Return the member that was named, or else the control plane."""
        from contextlib import nullcontext

        from karmada.cli.targeting import session

        cluster = (self._given.get("cluster") or self._given.get("clusters") or "").partition(",")[0]
        scope = self._given.get("scope")
        return session.through_proxy(control, cluster) if cluster and scope != "karmada" else nullcontext(control)

    def _way(self) -> tuple[str, str, str]:
        """Kubeconfig, context and namespace."""
        given = self._given
        return given.get("kubeconfig", ""), given.get("karmada_context", ""), given.get("namespace", "")


def _choices(option: click.Option) -> Sequence[str]:
    kind: Any = option.type
    if isinstance(kind, click.Choice):
        return list(kind.choices)
    if hasattr(kind, "scopes"):
        return list(kind.scopes)
    return kind.name.split("|") if "|" in kind.name else []


def _outputs(command: str, begun: str) -> Completion:
    found = _plain(begun, _TABLE_OUTPUTS.get(command, _OUTPUTS))
    if found.candidates and all(value.endswith("=") for value, _ in found.candidates):
        found.directive |= _NO_SPACE
    return found


def _in_list(begun: str, values: Iterable[str]) -> Completion:
    """Complete the last item of a list with commas."""
    head, comma, last = begun.rpartition(",")
    taken = head.split(",")
    return Completion(
        [(f"{head}{comma}{value}", "") for value in values if value.startswith(last) and value not in taken]
    )


def _run_request(request: Any) -> list[str]:
    import asyncio

    async def with_timeout() -> list[str]:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            result: list[str] = await request
            return result

    return asyncio.run(with_timeout())
