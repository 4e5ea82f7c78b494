"""A backend for the library `keyring`, in a file that the environment names; it fails where that says so."""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend


class FileRing(KeyringBackend):
    """Keeps everything in `$RING_FILE`; a directory there is a ring that is locked."""

    priority = 5  # pyright: ignore[reportAssignmentType] - the library wants a property of the class

    def get_password(self, service: str, username: str) -> str | None:
        return self._kept().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._keep({**self._kept(), f"{service}/{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        kept = self._kept()
        del kept[f"{service}/{username}"]
        self._keep(kept)

    def _kept(self) -> dict[str, str]:
        path = Path(os.environ["RING_FILE"])
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def _keep(self, kept: dict[str, str]) -> None:
        Path(os.environ["RING_FILE"]).write_text(json.dumps(kept), encoding="utf-8")
