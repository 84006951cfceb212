"""Which images run as processes, by the table and by a user's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.kube.sim.processes.images import ImageFileError, ImageRule, ImageTable, read_rules
from tests.support.cases import cases


@cases(
    ("*/karmada-agent", "docker.io/karmada/karmada-agent:v1.15.0", True),
    ("*/karmada-agent", "karmada/karmada-agent", True),
    ("*/karmada-agent", "registry.local:5000/karmada-agent@sha256:00", True),
    ("*/karmada-agent", "docker.io/karmada/karmada-agent-extra:v1", False),
    ("*/karmada-agent", "karmada-agent-x/other", False),
    ("nginx", "nginx:1.27", True),
    ("nginx", "docker.io/library/nginx", True),
    ("nginx", "quay.io/library/nginx", False),
    ("nginx:1.27", "nginx:1.27", True),
    ("nginx:1.27", "nginx:1.28", False),
    ("nginx:1.*", "nginx:1.28", True),
    ("known/*", "known/server:1", True),
    ("known/*", "other/server:1", False),
)
def test_a_pattern_matches_the_full_name_of_an_image(pattern: str, image: str, expected: bool) -> None:
    assert (ImageTable([ImageRule(image=pattern, command=("x",))]).of(image) is not None) is expected


def test_the_last_rule_counts() -> None:
    first, last = ImageRule(image="*/etcd", command=("a",)), ImageRule(image="registry.k8s.io/etcd", command=("b",))
    table = ImageTable([first, last])
    assert table.of("registry.k8s.io/etcd:3.5.9") is last
    assert table.of("quay.io/coreos/etcd:3.5.9") is first


def test_a_file_names_commands_by_image(tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    file.write_text("redis: [/usr/bin/redis-server]\n'a/*': {command: [x, -y], commands: {cli: [z]}}\n")
    redis, other = read_rules(file)
    assert redis == ImageRule(image="redis", command=("/usr/bin/redis-server",))
    assert other.programs("a/b:1") == {"b": ("x", "-y"), "cli": ("z",)}


@cases(
    ("- redis", "not a mapping of image patterns to commands"),
    ("redis: redis-server", 'image "redis": Expected `array`'),
    ("redis: []", 'image "redis": command needs at least the name of a program'),
    ("redis: {command: [x], shell: true}", "Object contains unknown field `shell`"),
    ("a: [", "images.yaml"),
)
def test_a_file_that_cannot_be_used_is_reported_by_entry(text: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "images.yaml"
    file.write_text(text)
    with pytest.raises(ImageFileError, match=r"images\.yaml") as caught:
        read_rules(file)
    assert error in str(caught.value)
