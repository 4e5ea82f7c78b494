"""A store of originals in memory, as a host of `jp.context` has one."""

from __future__ import annotations

from jp.context.handles import assign_handles, checksum_of, look_up


class MemoryArtifacts:
    """Keeps what it is given, in the order in which checksums were first asked for."""

    def __init__(self) -> None:
        self._met: dict[str, None] = {}
        self._assigned: dict[str, str] = {}
        self.kept: dict[str, str] = {}

    def handle(self, sha256: str) -> str:
        if sha256 not in self._met:
            self._met[sha256] = None
            self._assigned = assign_handles(self._met)
        return next(handle for handle, checksum in self._assigned.items() if checksum == sha256)

    def keep(self, content: str) -> str:
        sha256 = checksum_of(content)
        self.kept[sha256] = content
        return self.handle(sha256)

    def recall(self, handle: str) -> str | None:
        return self.kept.get(look_up(handle, self._assigned) or "")
