"""Estimates of the size of a prompt, from the request that contains it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from jp.context.budget import PER_IMAGE
from jp.context.estimate import estimate_tokens
from jp.provider.base import Sections

_ADDRESS = r'(?<!\\)"(?:data:[\w/.+-]+;base64,)?'
_PICTURE = re.compile(_ADDRESS + r'(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR)[A-Za-z0-9+/]*={0,2}"')
_DOCUMENT = re.compile(_ADDRESS + "JVBERi0")
"""Strings of JSON that are a picture (PNG, JPEG, GIF, WebP), and that begin a PDF, by their first bytes in Base64."""


class PromptSize(msgspec.Struct, frozen=True, kw_only=True):
    """About how many tokens each section of a prompt has. `encoded` is how many pictures and documents are in it."""

    tools: int
    system: int
    messages: int
    encoded: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.tools + self.system + self.messages

    def scaled(self, ratio: float) -> PromptSize:
        """Return the size with `ratio` real tokens for each estimated one."""
        return PromptSize(
            tools=round(self.tools * ratio),
            system=round(self.system * ratio),
            messages=round(self.messages * ratio),
            encoded=self.encoded,
        )


def prompt_size(sections: Sections) -> PromptSize:
    """Return the size of a prompt. An image costs what images do, a document as much as its bytes would as text."""
    tools, in_tools = _estimated(sections.tools)
    system, in_system = _estimated(sections.system)
    messages, in_messages = _estimated(item for message in sections.messages for item in message)
    return PromptSize(tools=tools, system=system, messages=messages, encoded=in_tools + in_system + in_messages)


def _estimated(items: Iterable[bytes]) -> tuple[int, int]:
    """Return the tokens, and the number of items that are not text."""
    tokens = encoded = 0
    for item in items:
        text = item.decode()
        pieces = _PICTURE.split(text)
        tokens += sum(map(estimate_tokens, pieces)) + PER_IMAGE * (len(pieces) - 1)
        encoded += len(pieces) - 1 + len(_DOCUMENT.findall(text))
    return tokens, encoded
