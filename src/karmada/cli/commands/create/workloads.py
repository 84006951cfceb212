"""`create deployment`, `job` and `cronjob`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.commands.create.generator import Recipe, generator
from karmada.cli.parsing.after_dashes import behind_dashes
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.objects.types import Obj


@generator("apps/v1/deployments", required=["image"])
@click.option("--image", multiple=True, help="The image to run; may be repeated, for several containers.")
@click.option("--port", type=int, default=-1, help="The port that the container opens.")
@click.option("-r", "--replicas", type=int, default=1, show_default=True, help="The number of replicas.")
def deployment(name: str, image: tuple[str, ...], port: int, replicas: int) -> Recipe:
    """Create a deployment that runs the image; words after -- are the container's command.

    \b
    Examples:
      karmadactl create deployment web --image=nginx:1.27 --replicas=3 --port=80
      karmadactl create deployment clock --image=busybox -- sh -c 'while :; do date; sleep 1; done'
    """
    command = behind_dashes() or []
    if len(image) > 1 and command:
        raise connect.failure("cannot specify multiple --image options and command")
    containers = [_container(_container_name(each), each, command) for each in image]
    if port >= 0:
        containers[0] = {**containers[0], "ports": [{"containerPort": port}]}
    labels = {"app": name}
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
            "strategy": {},
        },
        "status": {},
    }


def _container_name(image: str) -> str:
    """Return what the image is called, without its registry, tag and digest, made fit for a name."""
    name = image.rpartition("/")[2].partition("@")[0].partition(":")[0]
    if not any(character in name for character in "_."):
        return name
    from karmada.kube.objects.names import random_suffix

    return f"{name.replace('_', '-').replace('.', '-')}-{random_suffix()}"


def _container(name: str, image: str, command: Sequence[str]) -> Obj:
    container: Obj = {"name": name, "image": image}
    if command:
        container["command"] = list(command)
    return {**container, "resources": {}}


# jobs


@generator("batch/v1/jobs")
@click.option("--image", default="", help="The image to run.")
@click.option("--from", "source", default="", help="The cron job to run once now, as cronjob/NAME.")
def job(name: str, image: str, source: str) -> Recipe:
    """Create a job from an image or a cron job; words after -- are the container's command.

    \b
    Examples:
      karmadactl create job count --image=busybox -- sh -c 'seq 10'
      karmadactl create job backup-now --from=cronjob/backup
    """
    if bool(image) == bool(source):
        raise connect.failure("either --image or --from must be specified")
    command = behind_dashes() or []
    if command and source:
        raise connect.failure("cannot specify --from and command")
    if image:
        return _job(name, {"spec": _job_spec(name, image, command, "Never")})

    async def made(session: Session) -> Obj:
        from karmada.cli.targeting.resources import parse_targets

        catalog = await session.client.mapper.catalog()
        [target, *others] = parse_targets(catalog, [source], session.namespace)
        if others or target.mapping.gvk.group_kind != ("batch", "CronJob"):
            raise connect.failure("from must be an existing cronjob")
        if not target.name:
            raise connect.failure("from must be an existing cronjob")
        return _from_cronjob(name, await session.client.get(target.mapping.gvr, target.name, target.namespace))

    return made


def _from_cronjob(name: str, cronjob: Obj) -> Obj:
    template = cronjob["spec"]["jobTemplate"]
    meta = template.get("metadata") or {}
    annotations = {"cronjob.kubernetes.io/instantiate": "manual", **(meta.get("annotations") or {})}
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": cronjob["metadata"]["name"],
        "uid": cronjob["metadata"]["uid"],
        "controller": True,
    }
    metadata: Obj = {"annotations": annotations, "ownerReferences": [owner]}
    if meta.get("labels"):
        metadata["labels"] = meta["labels"]
    return _job(name, {"metadata": metadata, "spec": template.get("spec") or {}})


def _job(name: str, parts: Obj) -> Obj:
    metadata = {"name": name, **parts.get("metadata", {})}
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, "spec": parts["spec"], "status": {}}


@generator("batch/v1/cronjobs", required=["image", "schedule"])
@click.option("--image", default="", help="The image to run.")
@click.option("--schedule", default="", help="The schedule, in cron format.")
@click.option("--restart", default="", help="The restart policy: OnFailure or Never.")
def cronjob(name: str, image: str, schedule: str, restart: str) -> Recipe:
    """Create a cron job that runs the image on a schedule; words after -- are the container's command.

    \b
    Example:
      karmadactl create cronjob backup --image=busybox --schedule='0 3 * * *' -- sh -c 'echo saved'
    """
    template = {
        "metadata": {"name": name},
        "spec": _job_spec(name, image, behind_dashes() or [], restart or "OnFailure"),
    }
    return {
        "kind": "CronJob",
        "apiVersion": "batch/v1",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": template},
        "status": {},
    }


def _job_spec(name: str, image: str, command: Sequence[str], restart: str) -> dict[str, Any]:
    return {
        "template": {
            "metadata": {},
            "spec": {"containers": [_container(name, image, command)], "restartPolicy": restart},
        }
    }
