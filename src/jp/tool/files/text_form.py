"""A file's text apart from how the file spells it: byte order mark and line ends. Pure."""

from __future__ import annotations

import msgspec

_MARK = "\ufeff"


class TextForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a file spells its text."""

    has_mark: bool
    has_returns: bool

    def spelled(self, text: str) -> str:
        """`text` as the file has it."""
        body = text.replace("\n", "\r\n") if self.has_returns else text
        return f"{_MARK}{body}" if self.has_mark else body

    def plain(self, text: str) -> str:
        """What somebody says of the file's text, with its line ends."""
        return text.replace("\r\n", "\n") if self.has_returns else text


def taken_apart(raw: str) -> tuple[str, TextForm]:
    """The text in `raw`, and its form; together they give `raw` again, byte for byte.

    Only where each line ends with a carriage return and a line feed are the former no part of the text.
    """
    body = raw.removeprefix(_MARK)
    pairs = body.count("\r\n")
    has_returns = pairs > 0 and pairs == body.count("\n")
    form = TextForm(has_mark=body != raw, has_returns=has_returns)
    return form.plain(body), form
