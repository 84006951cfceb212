"""Requests to the simulator process, and the types of their flags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karmada.kube.objects.times import parse_duration
from karmada.kube.sim.admin_client import AdminClient, AdminError


class Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        try:
            return float(value) if value.replace(".", "", 1).isdigit() else parse_duration(value)
        except ValueError:
            self.fail(f'"{value}" is not a duration such as 30s or 1m30s', param, ctx)


class Pairs(click.ParamType[dict[str, str]]):
    """key=value,key=value"""

    name = "key=value,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        pairs = [part.partition("=") for part in value.split(",") if part]
        if any(not key or not equals for key, equals, _ in pairs):
            self.fail(f'"{value}" is not of the form key=value,key=value', param, ctx)
        return {key: text for key, _, text in pairs}


def request(folder: Path, method: str, path: str, body: object = None, timeout: float = 120.0) -> Any:
    try:
        return AdminClient(folder).request(method, path, body, timeout=timeout)
    except AdminError as error:
        raise click.ClickException(str(error)) from None
