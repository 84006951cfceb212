"""Which commands there are: their place in the overview, the module that has them, and one line on each.

Modules are imported when their command is used, so that showing a version costs no more than showing a version.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    module: str
    attribute: str
    summary: str


GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Basic Commands": {
        "explain": ("karmada.cli.commands.explain:explain", "Tell what the fields of a kind mean"),
        "get": ("karmada.cli.commands.get:get", "Show resources of the control plane and of its clusters"),
        "create": ("karmada.cli.commands.create:create", "Create resources from files or from what is asked for"),
        "delete": ("karmada.cli.commands.delete:delete", "Delete resources by file, name or label"),
        "edit": ("karmada.cli.commands.edit:edit", "Change a resource in an editor"),
    },
    "Cluster Registration Commands": {
        "init": ("karmada.cli.commands.later:init", "Install a control plane into a cluster"),
        "deinit": (
            "karmada.cli.commands.later:deinit",
            "Remove a control plane from the cluster it was installed into",
        ),
        "addons": ("karmada.cli.commands.later:addons", "List, enable and disable optional components"),
        "join": ("karmada.cli.commands.join:join", "Make a cluster a member that the control plane pushes to"),
        "unjoin": ("karmada.cli.commands.unjoin:unjoin", "Take a cluster that was joined out of the control plane"),
        "token": ("karmada.cli.commands.token:token", "Create, list and delete the tokens clusters register with"),
        "register": ("karmada.cli.commands.later:register", "Make a cluster a member that pulls for itself"),
        "unregister": (
            "karmada.cli.commands.later:unregister",
            "Take a cluster that was registered out of the control plane",
        ),
    },
    "Cluster Management Commands": {
        "cordon": ("karmada.cli.commands.cordon:cordon", "Keep new resources away from a cluster"),
        "uncordon": ("karmada.cli.commands.cordon:uncordon", "Let new resources onto a cluster again"),
        "taint": ("karmada.cli.commands.taint:taint", "Change the taints of clusters"),
    },
    "Troubleshooting and Debugging Commands": {
        "attach": ("karmada.cli.commands.attach:attach", "Connect to the running process of a container in a cluster"),
        "logs": ("karmada.cli.commands.logs:logs", "Print what a container in a cluster has written"),
        "exec": ("karmada.cli.commands.exec:exec_", "Run a command in a container in a cluster"),
        "describe": ("karmada.cli.commands.describe:describe", "Show a resource with its events and relations"),
        "interpret": (
            "karmada.cli.commands.interpret:interpret",
            "Check, run and edit customizations of the interpreter",
        ),
    },
    "Explaining Commands": {
        "why": ("karmada.cli.commands.why:why", "Tell why a resource is in the clusters where it is"),
        "simulate": ("karmada.cli.commands.simulate:simulate", "Tell what a policy would do, without doing it"),
        "render": (
            "karmada.cli.commands.render:render",
            "Show what a cluster would get, and which override made each change",
        ),
    },
    "Advanced Commands": {
        "apply": (
            "karmada.cli.commands.apply:apply",
            "Make resources as files have them, and propagate them if wanted",
        ),
        "promote": ("karmada.cli.commands.promote:promote", "Bring a resource of a cluster under the control plane"),
        "top": ("karmada.cli.commands.top:top", "Show what nodes and pods of clusters use"),
        "patch": ("karmada.cli.commands.patch:patch", "Change fields of a resource"),
    },
    "Settings Commands": {
        "label": ("karmada.cli.commands.label:label", "Change the labels of resources"),
        "annotate": ("karmada.cli.commands.annotate:annotate", "Change the annotations of resources"),
        "completion": ("karmada.cli.commands.completion:completion", "Print the completion script of a shell"),
    },
    "Local Environment Commands": {
        "local-up": ("karmada.cli.commands.local_up:local_up", "Start a control plane with members on this machine"),
        "local-down": ("karmada.cli.commands.local_down:local_down", "Stop what runs on this machine"),
        "local-status": ("karmada.cli.commands.local_status:local_status", "Tell what runs on this machine"),
        "sim": ("karmada.cli.commands.sim:sim", "Simulated clusters: real APIs, no machines behind them"),
    },
    "Control Plane Commands": {
        "backup": ("karmada.cli.commands.backup:backup", "Copy everything of a store into a file"),
        "restore": ("karmada.cli.commands.backup:restore", "Put a backup into an empty store"),
        "crds": ("karmada.cli.commands.crds:crds", "Write Karmada's CustomResourceDefinitions"),
        "webhook-config": (
            "karmada.cli.commands.webhook_config:webhook_config",
            "Write the admission webhooks' configurations",
        ),
    },
    "Other Commands": {
        "api-resources": ("karmada.cli.commands.api_resources:api_resources", "List the kinds that a server has"),
        "api-versions": (
            "karmada.cli.commands.api_versions:api_versions",
            "List the groups and versions that a server has",
        ),
    },
    "": {
        "options": ("karmada.cli.commands.options:options", "Show the flags that every command takes"),
        "version": ("karmada.cli.commands.version:version", "Show which version this is"),
    },
}
HIDDEN = frozenset({"options"})
"""Registered, but not in the overview."""
COMMANDS: dict[str, Entry] = {
    name: Entry(place.partition(":")[0], place.partition(":")[2], summary)
    for group in GROUPS.values()
    for name, (place, summary) in group.items()
}
