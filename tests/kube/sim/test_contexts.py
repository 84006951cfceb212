"""The kubeconfig of a fleet."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.kube.client.kubeconfig import Kubeconfig
from karmada.kube.schema.yamlio import dump_yaml, load_yaml
from karmada.kube.sim import contexts
from karmada.kube.sim.contexts import Contexts


def single(folder: Path, name: str, server: str = "https://localhost:1") -> Path:
    path = folder / f"{name}.config"
    described = {
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": "a: b"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    path.write_bytes(dump_yaml(described))
    return path


def use(path: Path, context: str) -> None:
    path.write_bytes(dump_yaml({**load_yaml(path.read_text()), "current-context": context}))


def current(path: Path) -> str:
    return Kubeconfig.load(path).current_context


@pytest.mark.parametrize("names", [(), ("one",), ("one", "two")])
def test_the_file_has_the_entries_of_every_cluster(tmp_path: Path, names: tuple[str, ...]) -> None:
    Contexts(tmp_path / "all").write({name: single(tmp_path, name) for name in names})
    written = load_yaml((tmp_path / "all").read_text())
    for part in ("clusters", "users", "contexts"):
        assert [entry["name"] for entry in written[part]] == list(names)
    assert (written["apiVersion"], written["kind"]) == ("v1", "Config")
    assert written["current-context"] == (names[0] if names else "")


def test_the_context_that_a_user_has_chosen_stays_while_its_cluster_does(tmp_path: Path) -> None:
    merged, path = Contexts(tmp_path / "all"), tmp_path / "all"
    both = {name: single(tmp_path, name) for name in ("one", "two")}
    merged.write(both)
    use(path, "two")
    merged.write({**both, "three": single(tmp_path, "three")})
    assert current(path) == "two"
    merged.write({"one": both["one"]})
    assert current(path) == "one"


def test_a_kubeconfig_is_read_again_only_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    merged, read = Contexts(tmp_path / "all"), list[str]()

    def counted(text: str) -> object:
        read.append(text)
        return load_yaml(text)

    monkeypatch.setattr(contexts, "load_yaml", counted)
    both = {name: single(tmp_path, name) for name in ("one", "two")}
    merged.write(both)
    merged.write(both)
    assert len(read) == 2
    single(tmp_path, "two", "https://localhost:2222")
    merged.write(both)
    assert len(read) == 3
    assert "https://localhost:2222" in (tmp_path / "all").read_text()
