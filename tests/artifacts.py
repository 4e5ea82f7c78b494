"""A store of originals in memory, as a host of `jp.context` has one."""

from __future__ import annotations

from jp.context.markers import assign_handles, checksum_of, look_up


class MemoryArtifacts:
    """Keeps what it is given. Handles come in the order in which checksums are first asked for."""

    def __init__(self) -> None:
        self._assigned: dict[str, str] = {}
        self._handles: dict[str, str] = {}
        self.kept: dict[str, str] = {}

    def handle(self, sha256: str) -> str:
        if sha256 not in self._handles:
            self._assigned = assign_handles((*self._handles, sha256))
            self._handles = {checksum: handle for handle, checksum in self._assigned.items()}
        return self._handles[sha256]

    def keep(self, content: str) -> str:
        sha256 = checksum_of(content)
        self.kept[sha256] = content
        return self.handle(sha256)

    def recall(self, handle: str) -> str | None:
        return self.kept.get(look_up(handle, self._assigned) or "")
