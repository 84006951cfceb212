"""The documentation is complete: every flag of every program, every event and condition the control plane writes."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import click
import pytest

from tests.support.cases import cases

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/karmada"
PROGRAMS = {
    "karmada": "karmada",
    "karmada-agent": "agent",
    "karmada-apiserver": "apiserver",
    "karmada-aggregated-apiserver": "aggregated_apiserver",
    "karmada-controller-manager": "controller_manager",
    "karmada-dashboard": "dashboard",
    "karmada-descheduler": "descheduler",
    "karmada-metrics-adapter": "metrics_adapter",
    "karmada-scheduler": "scheduler",
    "karmada-scheduler-estimator": "scheduler_estimator",
    "karmada-search": "search",
    "karmada-webhook": "webhook",
    "karmada-sim": "sim",
    "kube-apiserver": "kube_apiserver",
    "kube-controller-manager": "kube_controller_manager",
    "service-name-resolution-detector-example": "service_name_resolution_detector",
}
_FLAG = re.compile(r"`(-[-\w]+)`")
_EVENT = re.compile(r'(?:NORMAL|WARNING), f?"([A-Z]\w+|Get\{word\}Failed)"|"(\w+(?:Succeed|Failed))"')
_GENERATED = {"Get{word}Failed": ("GetReplicasFailed", "GetComponentsFailed")}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_page_of_a_program_lists_exactly_its_flags(program: str) -> None:
    command: click.Command = import_module(f"karmada.components.{PROGRAMS[program]}").main
    flags = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts) if flag.startswith("-")}
    page = (ROOT / f"docs/components/{program}.md").read_text()
    table = "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `-"))
    assert set(_FLAG.findall(table)) == flags - {"-h", "--help"}


def test_every_program_has_a_page() -> None:
    scripts = re.findall(r'^([\w-]+) = "karmada\.components', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert set(scripts) == set(PROGRAMS)


def test_every_event_is_explained() -> None:
    page = (ROOT / "docs/troubleshooting.md").read_text()
    missing = {event for event in _events() if f"`{event}`" not in page}
    assert not missing


def _events() -> set[str]:
    found: set[str] = set()
    for room in ("controllers", "descheduler", "overrides", "problemdetector", "scheduler", "search"):
        for source in (SOURCES / room).rglob("*.py"):
            for pair in _EVENT.findall(source.read_text()):
                event = pair[0] or pair[1]
                found.update(_GENERATED.get(event, (event,)))
    assert {"SyncFailed", "ScheduleBindingFailed", "TaintClusterSucceed"} <= found
    return found


@cases(
    ("controllers/cluster_status/probe.py", r'"(?:True|False)", "([A-Z]\w+)"'),
    ("controllers/cluster_status/probe.py", r'"(StatusCollectionFailed)"'),
    ("controllers/cluster_status/enablements.py", r'_condition\("(?:True|False)", "([A-Z]\w+)"'),
    ("controllers/cluster/monitor.py", r'"reason": "(\w+)"'),
    ("controllers/execution/status.py", r'\("(?:True|False)", "(\w+)"'),
    ("controllers/execution/controller.py", r'draft\.set\(APPLIED, "\w+", "(\w+)"'),
    ("controllers/binding_status/aggregation.py", r'\("(?:True|False)", "(\w+)"'),
    ("scheduler/decision.py", r'^    [A-Z_]+ = "(\w+)"'),
    ("controllers/federated_hpa/controller.py", r'_(?:emit|refuse)\(round_, "(\w+)"'),
    ("controllers/federated_hpa/target.py", r'Step\(\s*"(\w+)"'),
    ("search/registry_status.py", r'"((?:Kinds|Clusters|AllClusters)\w+)"'),
    ("components/quarantine_keeper.py", r'^(?:QUARANTINED|RELEASED|_REASON): Final = "(\w+)"'),
    ("kube/autoscaling/sources.py", r'(?:SourceFailed\(|UNKNOWN_SOURCE = )"(?!FailedGetExternal)(\w+)"'),
)
def test_every_reason_of_a_condition_is_explained(source: str, pattern: str) -> None:
    reasons = re.findall(pattern, (SOURCES / source).read_text(), re.MULTILINE)
    page = (ROOT / "docs/troubleshooting.md").read_text()
    assert reasons
    assert [reason for reason in reasons if f"`{reason}`" not in page] == []


def test_links_between_pages_lead_somewhere() -> None:
    targets = [
        (page, target)
        for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
        for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text())
    ]
    assert [(str(page), target) for page, target in targets if not (page.parent / target).exists()] == []


def test_links_to_headings_lead_somewhere() -> None:
    broken = []
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
            other = page.parent / target if target else page
            headings = re.findall(r"^#+ (.*)$", other.read_text() if other.exists() else "", re.MULTILINE)
            if other.exists() and heading not in {
                re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings
            }:
                broken.append(f"{page.relative_to(ROOT)}: {target}#{heading}")
    assert broken == []
