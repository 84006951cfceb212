"""What this program is called: by itself, or as a plug-in of kubectl."""

from __future__ import annotations

import sys
from os.path import basename

_STANDALONE, _PLUGIN = "karmadactl", "kubectl-karmada"


def binary() -> str:
    """Return the name of the program, as usage lines have it."""
    return _PLUGIN if basename(sys.argv[0]).startswith((_PLUGIN, "kubectl_complete-karmada")) else _STANDALONE


def command() -> str:
    """Return what a person types before the name of a command."""
    return binary().replace("kubectl-", "kubectl ")


def in_own_words(text: str) -> str:
    """Help and examples, with the program called what it was called by."""
    return text if binary() == _STANDALONE else text.replace(f"{_STANDALONE} ", f"{command()} ")
