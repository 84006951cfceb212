from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError

WRONG: list[tuple[Any, str]] = [
    ({"clusters": ["x"]}, "clusters[0] must have fields"),
    ({"clusters": [None]}, "clusters[0] is empty"),
    ({"users": {"a": 1}}, "users must be a list"),
    ({"contexts": [{"name": "a", "context": []}]}, "contexts[0].context must have fields"),
    ({"users": [{"name": "a", "user": {"token": 12345}}]}, "users[0].user.token must be text"),
    ({"users": [{"name": "a", "user": {"as-groups": "a"}}]}, "users[0].user.as-groups must be a list"),
    ({"users": [{"user": {"as-user-extra": {"a": [1]}}}]}, "users[0].user.as-user-extra.a[0] must be text"),
    ({"users": [{"user": {"exec": {"env": [5]}}}]}, "users[0].user.exec.env[0] must have fields"),
    ({"clusters": [{"cluster": {"insecure-skip-tls-verify": "no"}}]}, "insecure-skip-tls-verify must be true or false"),
    ({"current-context": {}}, "current-context must be text"),
]


@pytest.mark.parametrize(("document", "why"), WRONG)
def test_what_has_the_wrong_shape_is_named_and_not_shown(document: Any, why: str) -> None:
    with pytest.raises(KubeconfigError, match=re.escape(why)) as caught:
        Kubeconfig.parse(yaml.safe_dump(document))
    assert "12345" not in str(caught.value)
