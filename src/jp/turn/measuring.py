"""Sizes of prompts: estimates, and what providers report beside them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from jp.conversation.entries import Usage
from jp.conversation.thread import Thread
from jp.conversation.turns import prompt_tokens
from jp.provider.base import Part, Provider, Sections, UsageReport, WireRequest
from jp.provider.errors import ProviderError


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
    from jp.context.estimate import estimate_parts

    tools, system = estimate_parts(sections.tools), estimate_parts(sections.system)
    messages = [message.tokens for message in sections.messages]
    tokens, encoded = [part.tokens for part in messages], [part.encoded for part in messages]
    return PromptSize(
        tools=tools.tokens,
        system=system.tokens,
        messages=sum(tokens),
        encoded=tools.encoded + system.encoded + sum(encoded),
    )


class RelayingProvider:
    """A base class for provider wrappers: forwards everything except `stream`, which a subclass implements."""

    def __init__(self, inner: Provider) -> None:
        self.inner = inner

    @property
    def id(self) -> str:
        """See the port."""
        return self.inner.id

    @property
    def renderer(self) -> int:
        """See the port."""
        return self.inner.renderer

    def render(self, thread: Thread) -> WireRequest:
        """See the port."""
        return self.inner.render(thread)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """See the port."""
        return self.inner.locate_rejected(thread, error)


class Measured(msgspec.Struct, frozen=True):
    """The tokens of one prompt, as they were estimated and as `model` of the provider has reported them."""

    model: str
    estimated: int
    reported: int


class MeasuringProvider(RelayingProvider):
    """A provider that remembers what it reported. Nothing is estimated before a request is answered."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)
        self.measured: list[Measured] = []

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        """See the port."""
        usage = Usage()
        try:
            async with aclosing(self.inner.stream(request)) as parts:
                async for part in parts:
                    usage = part.usage if isinstance(part, UsageReport) else usage
                    yield part
        finally:
            self._remember(request, prompt_tokens(usage))

    def _remember(self, request: WireRequest, reported: int) -> None:
        if not reported:
            return

        size = prompt_size(request.sections)
        # What a picture or a document costs, words are not to blame for.
        if not size.encoded:
            self.measured.append(Measured(request.model, size.total, reported))
