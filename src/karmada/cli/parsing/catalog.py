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
        "explain": ("explain:explain", "Tell what the fields of a kind mean"),
        "get": ("get:get", "Show resources of the control plane and of its clusters"),
        "create": ("create:create", "Create resources from files or from what is asked for"),
        "delete": ("delete:delete", "Delete resources by file, name or label"),
        "edit": ("edit:edit", "Change a resource in an editor"),
    },
    "Cluster Registration Commands": {
        "init": ("later:init", "Install a control plane into a cluster"),
        "deinit": (
            "later:deinit",
            "Remove a control plane from the cluster it was installed into",
        ),
        "addons": ("later:addons", "List, enable and disable optional components"),
        "join": ("join:join", "Make a cluster a member that the control plane pushes to"),
        "unjoin": ("unjoin:unjoin", "Take a cluster that was joined out of the control plane"),
        "token": ("token:token", "Create, list and delete the tokens clusters register with"),
        "register": ("later:register", "Make a cluster a member that pulls for itself"),
        "unregister": (
            "later:unregister",
            "Take a cluster that was registered out of the control plane",
        ),
    },
    "Cluster Management Commands": {
        "cordon": ("cordon:cordon", "Keep new resources away from a cluster"),
        "uncordon": ("cordon:uncordon", "Let new resources onto a cluster again"),
        "taint": ("taint:taint", "Change the taints of clusters"),
    },
    "Troubleshooting and Debugging Commands": {
        "attach": ("attach:attach", "Connect to the running process of a container in a cluster"),
        "logs": ("logs:logs", "Print what a container in a cluster has written"),
        "exec": ("exec:exec_", "Run a command in a container in a cluster"),
        "describe": ("describe:describe", "Show a resource with its events and relations"),
        "interpret": (
            "interpret:interpret",
            "Check, run and edit customizations of the interpreter",
        ),
    },
    "Explaining Commands": {
        "why": ("why:why", "Tell why a resource is in the clusters where it is"),
        "simulate": ("simulate:simulate", "Tell what a policy would do, without doing it"),
        "render": (
            "render:render",
            "Show what a cluster would get, and which override made each change",
        ),
    },
    "Advanced Commands": {
        "apply": (
            "apply:apply",
            "Make resources as files have them, and propagate them if wanted",
        ),
        "promote": ("promote:promote", "Bring a resource of a cluster under the control plane"),
        "top": ("top:top", "Show what nodes and pods of clusters use"),
        "patch": ("patch:patch", "Change fields of a resource"),
    },
    "Settings Commands": {
        "label": ("label:label", "Change the labels of resources"),
        "annotate": ("annotate:annotate", "Change the annotations of resources"),
        "completion": ("completion:completion", "Print the completion script of a shell"),
    },
    "Local Environment Commands": {
        "local-up": ("local_up:local_up", "Start a control plane with members on this machine"),
        "local-down": ("local_down:local_down", "Stop what runs on this machine"),
        "local-status": ("local_status:local_status", "Tell what runs on this machine"),
        "sim": ("sim:sim", "Simulated clusters: real APIs, no machines behind them"),
    },
    "Control Plane Commands": {
        "backup": ("backup:backup", "Copy everything of a store into a file"),
        "restore": ("backup:restore", "Put a backup into an empty store"),
        "crds": ("crds:crds", "Write Karmada's CustomResourceDefinitions"),
        "webhook-config": (
            "webhook_config:webhook_config",
            "Write the admission webhooks' configurations",
        ),
    },
    "Other Commands": {
        "api-resources": ("api_resources:api_resources", "List the kinds that a server has"),
        "api-versions": (
            "api_versions:api_versions",
            "List the groups and versions that a server has",
        ),
    },
    "": {
        "options": ("options:options", "Show the flags that every command takes"),
        "version": ("version:version", "Show which version this is"),
    },
}
HIDDEN = frozenset({"options"})
"""Registered, but not in the overview."""
COMMANDS: dict[str, Entry] = {
    name: Entry(f"karmada.cli.commands.{place.partition(':')[0]}", place.partition(":")[2], summary)
    for group in GROUPS.values()
    for name, (place, summary) in group.items()
}
