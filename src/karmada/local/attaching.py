"""`--attach KUBECONFIG[:CONTEXT][=NAME]`: a cluster to join, and its name.

It is joined once and not recorded here: a later start does not join it again, so a cluster that was unjoined stays
unjoined.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from karmada.api.names import cluster_name_errors
from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError
from karmada.local.folder import Refused


@dataclass(frozen=True, slots=True)
class Attached:
    """An existing cluster to join."""

    name: str
    kubeconfig: Path
    context: str = ""


def split(text: str) -> tuple[Path, str, str]:
    """File, context and name. The separators may occur in the file's name if such a file exists."""
    name = context = ""
    if not _is_file(text) and "=" in text:
        text, _, name = text.rpartition("=")
    if not _is_file(text):
        for colon in (place for place, sign in enumerate(text) if sign == ":"):
            if _is_file(text[:colon]):
                text, context = text[:colon], text[colon + 1 :]
                break
    return Path(text).expanduser().absolute(), context, name


def _is_file(text: str) -> bool:
    return bool(text) and Path(text).expanduser().is_file()


def parse(text: str) -> Attached:
    """Return the parsed flag; Refused if the kubeconfig or the name is not usable."""
    path, context, name = split(text)
    try:
        config = Kubeconfig.load(path)
        config.resolve(context)
    except KubeconfigError as error:
        raise Refused(f"--attach {text}: {error}") from error
    chosen = name or context or config.current_context
    wrong = cluster_name_errors(chosen)
    if wrong:
        raise Refused(f'--attach {text}: "{chosen}" cannot be the name of a cluster ({wrong[0]}); add =NAME')
    return Attached(chosen, path, context)
