"""Where a scheme keeps the originals of what it leaves out."""

from __future__ import annotations

from jp.context.markers import checksum_of


class Store:
    """Originals by the first sixteen digits of their checksums: of so many contents, none are alike in these."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def handle(self, sha256: str) -> str:
        """The beginning of the checksum."""
        return sha256[:16]

    def keep(self, content: str) -> str:
        """Store `content`."""
        handle = self.handle(checksum_of(content))
        self.kept[handle] = content
        return handle

    def recall(self, handle: str) -> str | None:
        """What was kept."""
        return self.kept.get(handle)
