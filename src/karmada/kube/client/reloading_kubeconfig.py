"""A kubeconfig file whose credentials are followed: a rotated certificate in it is used without a restart.

What is under way goes on over the connections it has; new requests use the new credentials. A file that cannot be read
or used leaves those of before in place. Only credentials are followed, not the address of the server.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from karmada.kube.client.config import RestConfig
from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError
from karmada.kube.client.tls import FileReader


class ReloadingKubeconfig:
    def __init__(self, path: str, context: str = "") -> None:
        """KubeconfigError when it cannot be used."""
        self._directory = Path(path).parent
        self._context = context
        self._file = FileReader(path)
        self._current = Kubeconfig.load(path).resolve(context)
        self._contents = b""
        self._contents = self._read()

    def config(self) -> RestConfig:
        """Return the settings for a transport, which uses what the file has at each request."""
        return replace(self._current, reloaded=self)

    def current(self) -> RestConfig:
        contents = self._read()
        if contents is not self._contents:
            self._contents = contents
            self.adopt(contents)
        return self._current

    def adopt(self, kubeconfig: bytes) -> None:
        """Use these credentials from now on, until the file changes: it may follow later."""
        try:
            self._current = Kubeconfig.parse(kubeconfig, directory=self._directory).resolve(self._context)
        except KubeconfigError:
            return  # a file that is being written, or is wrong: the next change of it is read again

    def _read(self) -> bytes:
        try:
            return self._file.read()
        except OSError:
            return self._contents
