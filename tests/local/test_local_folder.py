"""The folder of a local environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.local.folder import Choices, Folder, Refused, folder_of_clusters, shown


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "karmada")
    folder.make()
    return folder


def test_what_was_requested_is_kept(folder: Folder) -> None:
    assert folder.choices() is None
    choices = Choices(members=4, port=6443, storage="etcd", etcd_ports=(1, 2))
    folder.keep(choices)
    assert Folder(folder.root).choices() == choices
    assert (folder.root / "local.json").stat().st_mode & 0o777 == 0o600


def test_simulated_clusters_are_found_in_the_folder_of_a_local_environment_too(folder: Folder) -> None:
    assert folder_of_clusters(folder.root) == folder.root
    folder.keep(Choices(members=1, port=0))
    assert folder_of_clusters(folder.root) == folder.sim


def test_a_damaged_file_is_named(folder: Folder) -> None:
    (folder.root / "local.json").write_text("{")
    with pytest.raises(Refused, match=r"local\.json cannot be read"):
        folder.choices()


def test_the_kubeconfigs_are_those_that_the_programs_write(folder: Folder) -> None:
    folder.sim.mkdir()
    folder.link_kubeconfigs()
    (folder.root / "admin.kubeconfig").write_text("plane")
    (folder.sim / "members.config").write_text("members")
    assert folder.control_kubeconfig.read_text() == "plane"
    assert folder.members_kubeconfig.read_text() == "members"
    moved = folder.root.rename(folder.root.with_name("elsewhere"))
    assert (moved / "members.config").read_text() == "members"


def test_linking_again_changes_nothing_and_replaces_what_is_no_link(folder: Folder) -> None:
    folder.members_kubeconfig.write_text("old")
    folder.link_kubeconfigs()
    before = folder.members_kubeconfig.lstat().st_ino
    assert folder.members_kubeconfig.is_symlink()
    folder.link_kubeconfigs()
    assert folder.members_kubeconfig.lstat().st_ino == before


def test_purging_removes_what_was_made_and_nothing_else(folder: Folder) -> None:
    folder.keep(Choices(members=1, port=1))
    folder.link_kubeconfigs()
    for name in ("state.db", "state.db-wal", "admin.kubeconfig", "sim/clusters/member1/state.db", "pki/ca.key"):
        path = folder.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (folder.root / "mine.txt").write_text("keep")
    folder.purge()
    assert [path.name for path in folder.root.iterdir()] == ["mine.txt"]
    (folder.root / "mine.txt").unlink()
    folder.purge()
    assert not folder.root.exists()


def test_paths_are_shown_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/jane")
    assert shown(Path("/home/jane/.karmada")) == "~/.karmada"
    assert shown(Path("/home/janet/.karmada")) == "/home/janet/.karmada"
    assert shown(Path("/home/jane")) == "/home/jane"
