"""How tools name files: as attachments do. Loaded when a tool reads, not when a command starts."""

from __future__ import annotations


class AttachmentNames:
    """See the port, `jp.tool.confined.FileNames`."""

    def real_path(self, path: str) -> str:
        """See the port."""
        from jp.attachment.files.location import CanonicalNames

        return CanonicalNames().real_path(path)

    def uri(self, path: str) -> str:
        """See the port."""
        from jp.attachment.files.location import CanonicalNames

        return CanonicalNames().uri(path)
