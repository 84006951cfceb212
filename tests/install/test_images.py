"""From which registry every image comes."""

from __future__ import annotations

from karmada.install.images import IMAGE, TAG, ImageSource
from tests.support.cases import cases

OFFICIAL = "registry.k8s.io"
MIRROR = "registry.cn-hangzhou.aliyuncs.com/google_containers"


@cases(
    ({}, IMAGE, IMAGE, f"{OFFICIAL}/etcd:3.6.6-0"),
    ({"private_registry": "r.io/k"}, f"r.io/k/karmada:{TAG}", f"r.io/k/karmada:{TAG}", "r.io/k/etcd:3.6.6-0"),
    ({"mirror_country": "cn"}, f"{MIRROR}/kube-apiserver:v1.35.2", IMAGE, f"{MIRROR}/etcd:3.6.6-0"),
    ({"mirror_country": "xx"}, IMAGE, IMAGE, f"{OFFICIAL}/etcd:3.6.6-0"),
    ({"kubernetes_tag": "v1.34.0"}, f"{OFFICIAL}/kube-apiserver:v1.34.0", IMAGE, f"{OFFICIAL}/etcd:3.6.6-0"),
    (
        {"kubernetes_registry": "k.io", "mirror_country": "cn", "private_registry": "r.io/"},
        "k.io/kube-apiserver:v1.35.2",
        f"r.io/karmada:{TAG}",
        "k.io/etcd:3.6.6-0",
    ),
)
def test_images_come_from_the_registry_that_the_flags_name(
    source: dict[str, str], server: str, scheduler: str, etcd: str
) -> None:
    images = ImageSource(**source)  # type: ignore[arg-type]
    assert images.component("karmada-apiserver") == server
    assert images.component("karmada-scheduler") == scheduler
    assert images.etcd() == etcd


def test_an_image_that_is_named_is_taken_as_it_is() -> None:
    images = ImageSource(private_registry="r.io", kubernetes_tag="v1.34.0")
    assert images.component("karmada-apiserver", "me/server:1") == "me/server:1"
    assert images.etcd("me/etcd:1") == "me/etcd:1"
