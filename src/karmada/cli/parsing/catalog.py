"""The commands: their group in the overview, their module, and a one-line summary.

Modules are imported on use, so that a command loads only its own code.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    module: str
    attribute: str
    summary: str


GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Basic Commands": {
        "explain": ("explain:explain", "Show the documentation of a resource type"),
        "get": ("get:get", "List resources of the control plane and its members"),
        "create": ("create:create", "Create a resource from a file or from flags"),
        "delete": ("delete:delete", "Delete resources by file, name or label"),
        "edit": ("edit:edit", "Edit a resource in an editor"),
    },
    "Cluster Registration Commands": {
        "init": ("init:init", "Install a control plane into a cluster"),
        "deinit": (
            "deinit:deinit",
            "Remove a control plane from the cluster it was installed into",
        ),
        "addons": ("addons:addons", "List, enable and disable optional components"),
        "join": ("join:join", "Register a cluster in push mode"),
        "unjoin": ("unjoin:unjoin", "Unregister a cluster in push mode"),
        "token": ("token:token", "Create, list and delete the tokens clusters register with"),
        "register": ("register:register", "Register a cluster in pull mode"),
        "unregister": ("unregister:unregister", "Unregister a cluster in pull mode"),
    },
    "Cluster Management Commands": {
        "cordon": ("cordon:cordon", "Mark a cluster unschedulable"),
        "uncordon": ("cordon:uncordon", "Mark a cluster schedulable"),
        "taint": ("taint:taint", "Change the taints of clusters"),
    },
    "Troubleshooting and Debugging Commands": {
        "attach": ("attach:attach", "Attach to a running container in a cluster"),
        "logs": ("logs:logs", "Print the logs of a container in a cluster"),
        "exec": ("exec:exec_", "Run a command in a container in a cluster"),
        "describe": ("describe:describe", "Show details of a resource and its events"),
        "interpret": (
            "interpret:interpret",
            "Check, run and edit interpreter customizations",
        ),
    },
    "Searching Commands": {
        "search": ("search:search", "Find objects of all members by what is in them"),
        "orphans": ("orphans:orphans", "List objects in clusters that the control plane does not know any more"),
    },
    "Explaining Commands": {
        "why": ("why:why", "Explain why a resource is in its clusters"),
        "simulate": ("simulate:simulate", "Show what a policy would do, without applying it"),
        "drill": ("drill:drill", "Rehearse the failure of clusters, without touching them"),
        "render": (
            "render:render",
            "Show the manifest a cluster would get, with the override behind each change",
        ),
    },
    "Advanced Commands": {
        "apply": (
            "apply:apply",
            "Apply configuration files, and optionally propagate them",
        ),
        "promote": ("promote:promote", "Bring an existing resource of a cluster under the control plane"),
        "top": ("top:top", "Show the CPU and memory usage of nodes and pods of members"),
        "patch": ("patch:patch", "Change fields of a resource"),
    },
    "Settings Commands": {
        "label": ("label:label", "Change the labels of resources"),
        "annotate": ("annotate:annotate", "Change the annotations of resources"),
        "completion": ("completion:completion", "Print the completion script of a shell"),
    },
    "Local Environment Commands": {
        "local-up": ("local_up:local_up", "Start a control plane with members on this machine"),
        "local-down": ("local_down:local_down", "Stop the local environment"),
        "local-status": ("local_status:local_status", "Show the state of the local environment"),
        "sim": ("sim:sim", "Create, inspect and break simulated clusters"),
    },
    "Control Plane Commands": {
        "backup": ("backup:backup", "Write a snapshot of the store into a file"),
        "restore": ("backup:restore", "Restore a snapshot into an empty store"),
        "quarantine": ("quarantine:quarantine", "List and release what hung a controller"),
        "check-store": ("check_store:check_store", "Check that everything in the store is as it was written"),
        "new-encryption-key": ("encryption:new_encryption_key", "Put a new key in front of an EncryptionConfiguration"),
        "rewrite": ("encryption:rewrite", "Store objects again as they are, with the current encryption key"),
        "rotate-authority": (
            "rotate_authority:rotate_authority",
            "Replace the certificate authority of a control plane",
        ),
        "crds": ("crds:crds", "Write Karmada's CustomResourceDefinitions"),
        "webhook-config": (
            "webhook_config:webhook_config",
            "Write the admission webhooks' configurations",
        ),
    },
    "Other Commands": {
        "api-resources": ("api_resources:api_resources", "List the resource types that a server serves"),
        "api-versions": (
            "api_versions:api_versions",
            "List the API versions that a server serves",
        ),
    },
    "": {
        "helm-hook": ("helm_hook:helm_hook", "Do what the Helm chart cannot; for its jobs"),
        "options": ("options:options", "Show the flags that every command accepts"),
        "version": ("version:version", "Show the version of this program"),
    },
}
HIDDEN = frozenset({"helm-hook", "options"})
"""Registered, but not in the overview."""
COMMANDS: dict[str, Entry] = {
    name: Entry(f"karmada.cli.commands.{place.partition(':')[0]}", place.partition(":")[2], summary)
    for group in GROUPS.values()
    for name, (place, summary) in group.items()
}
