"""The names of files for the tools: spelled as the attachment handler spells them, so that one file has one URI."""

from __future__ import annotations


class AttachedNames:
    """See the port, `jp.tool.confined.FileNames`. Nothing is loaded before a tool reads."""

    def real_path(self, path: str) -> str:
        """See the port."""
        from jp.attachment.location import real_path
        from jp.attachment.names import Names

        return real_path(path, Names())

    def uri(self, path: str) -> str:
        """See the port."""
        from jp.attachment.names import Names
        from jp.conversation.uri import file_uri

        return file_uri(Names().spelled(path))
