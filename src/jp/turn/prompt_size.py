"""Estimates of the size of a prompt, from the request that contains it. Pure."""

from __future__ import annotations

import msgspec

from jp.context.estimate import estimate_parts
from jp.provider.base import Sections


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
    """Return the size of a prompt. Messages are counted once, however many requests contain them."""
    tools, system = estimate_parts(sections.tools), estimate_parts(sections.system)
    messages = [message.tokens for message in sections.messages]
    tokens, encoded = [part.tokens for part in messages], [part.encoded for part in messages]
    return PromptSize(
        tools=tools.tokens,
        system=system.tokens,
        messages=sum(tokens),
        encoded=tools.encoded + system.encoded + sum(encoded),
    )
