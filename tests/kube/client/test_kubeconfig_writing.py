"""A kubeconfig that is written for another program leads to the same server as the same user."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.client.config import ExecConfig, Impersonation, Material, RestConfig
from karmada.kube.client.kubeconfig import Kubeconfig
from karmada.kube.client.kubeconfig_writing import kubeconfig_of
from karmada.kube.client.reloading_kubeconfig import ReloadingKubeconfig

WORDS = st.text("abcß:/ \"'\n", min_size=1, max_size=8)
MAYBE = st.one_of(st.just(""), WORDS)
MATERIAL = st.one_of(
    st.just(Material()),
    st.binary(min_size=1).map(lambda data: Material(data=data)),
    st.sampled_from(["/a/b", "/c"]).map(lambda path: Material(path=path)),
)
IMPERSONATION = st.builds(
    Impersonation, user=MAYBE, uid=MAYBE, groups=st.lists(WORDS).map(tuple),
    extra=st.dictionaries(WORDS, st.lists(WORDS, min_size=1).map(tuple)),
)  # fmt: skip
EXEC = st.builds(
    ExecConfig, command=st.just("get-token"), api_version=st.just("client.authentication.k8s.io/v1"),
    args=st.lists(WORDS).map(tuple), env=st.dictionaries(WORDS, WORDS), install_hint=MAYBE,
    provide_cluster_info=st.booleans(), config=st.one_of(st.none(), st.dictionaries(WORDS, WORDS, min_size=1)),
)  # fmt: skip
CONFIG = st.builds(
    RestConfig, server=st.sampled_from(["https://host:1", "http://[::1]:80/prefix"]), ca=MATERIAL, certificate=MATERIAL,
    key=MATERIAL, insecure=st.booleans(), tls_server_name=MAYBE, proxy_url=MAYBE, disable_compression=st.booleans(),
    token=MAYBE, token_file=st.sampled_from(["", "/run/token"]), username=MAYBE, password=MAYBE,
    exec=st.one_of(st.none(), EXEC), impersonate=IMPERSONATION, namespace=st.sampled_from(["default", "prod"]),
)  # fmt: skip


@given(CONFIG)
def test_what_is_written_is_what_is_read(config: RestConfig) -> None:
    read = Kubeconfig.parse(kubeconfig_of(config)).resolve()
    assert replace(read, user_agent=config.user_agent) == config


def test_credentials_that_are_followed_are_those_of_now_and_who_is_impersonated_stays(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(kubeconfig_of(RestConfig("https://host:1", token="old")))
    followed = ReloadingKubeconfig(str(file))
    config = replace(followed.config(), impersonate=Impersonation("jane"))
    followed.adopt(kubeconfig_of(RestConfig("https://host:1", token="new")))
    read = Kubeconfig.parse(kubeconfig_of(config)).resolve()
    assert (read.token, read.impersonate.user) == ("new", "jane")
