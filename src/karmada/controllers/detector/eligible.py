"""Which objects can be propagated: neither the control plane's own kinds nor those in its own namespaces."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from karmada.api import well_known
from karmada.kube.client.discovery import Mapping
from karmada.kube.objects.gvk import GVK, GroupVersion

_OWN_GROUPS: Final = frozenset(
    f"{name}.karmada.io"
    for name in ("cluster", "policy", "work", "config", "networking", "autoscaling", "remedy", "apps")
) | {"events.k8s.io"}
_OWN_VERSIONS: Final = frozenset({GroupVersion("coordination.k8s.io", "v1")})
_OWN_KINDS: Final = frozenset({GVK("", "v1", "Event")})
_NEEDED_VERBS: Final = ("delete", "list", "watch")
_NEVER: Final = ("kube-system", "extension-apiserver-authentication")
"""A ConfigMap with keys of the API server itself."""


@dataclass(frozen=True, slots=True)
class SkippedApis:
    """Kinds that are never propagated, by whole groups, by versions of groups, and one by one."""

    groups: frozenset[str] = _OWN_GROUPS
    versions: frozenset[GroupVersion] = _OWN_VERSIONS
    kinds: frozenset[GVK] = _OWN_KINDS

    @classmethod
    def parse(cls, text: str) -> SkippedApis:
        """Besides our own, what `text` names: `group`, `group/version`, `group/version/Kind,Kind`, `v1/Kind,Kind`.

        Several are separated by semicolons. ValueError when one is none of these.
        """
        groups, versions, kinds = set(_OWN_GROUPS), set(_OWN_VERSIONS), set(_OWN_KINDS)
        for token in filter(None, text.split(";")):
            parts = token.split("/")
            if len(parts) == 1:
                groups.add(token)
            elif len(parts) == 2 and not token.startswith("v1"):
                versions.add(GroupVersion(*parts))
            elif len(parts) <= 3:
                group, version = parts[:-1] if len(parts) == 3 else ("", parts[0])
                kinds.update(GVK(group, version, kind) for kind in parts[-1].split(","))
            else:
                raise ValueError(f"parse --skipped-propagating-apis invalid parameter: {token}")
        return cls(frozenset(groups), frozenset(versions), frozenset(kinds))

    def propagates(self, mapping: Mapping) -> bool:
        """Return whether a served resource can be a template."""
        gvk = mapping.gvk
        if not mapping.allows(*_NEEDED_VERBS):
            return False
        return gvk.group not in self.groups and mapping.gvr.group_version not in self.versions and gvk not in self.kinds


class SkippedNamespaces:
    """The control plane's own, and those that a pattern names as a whole."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [re.compile(f"^{pattern}$") for pattern in patterns]
        self._known: dict[str, bool] = {"": False}

    def skips(self, gvk: GVK, namespace: str, name: str) -> bool:
        if (namespace, name) == _NEVER and gvk == ("", "v1", "ConfigMap"):
            return True
        skipped = self._known.get(namespace)
        if skipped is None:
            skipped = well_known.is_reserved_namespace(namespace) or any(p.search(namespace) for p in self._patterns)
            self._known[namespace] = skipped
        return skipped
