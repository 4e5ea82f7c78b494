"""A store of originals in memory, as a host of `jp.context` has one."""

from __future__ import annotations

from jp.context.handles import assign_handles, checksum_of, look_up


class MemoryArtifacts:
    """Keeps what it is given. Handles come in the order in which checksums are first asked for."""

    def __init__(self) -> None:
        self._met: dict[str, None] = {}
        self.kept: dict[str, str] = {}

    def handle(self, sha256: str) -> str:
        self._met[sha256] = None
        handles = {checksum: handle for handle, checksum in assign_handles(self._met).items()}
        return handles[sha256]

    def keep(self, content: str) -> str:
        sha256 = checksum_of(content)
        self.kept[sha256] = content
        return self.handle(sha256)

    def recall(self, handle: str) -> str | None:
        return self.kept.get(look_up(handle, assign_handles(self._met)) or "")
