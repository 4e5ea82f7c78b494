"""How much a turn's resources weigh, before anybody pays for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import assert_never

import msgspec

from jp.context.estimate import estimate_tokens, estimate_tokens_of_bytes
from jp.conversation.resource import BinaryContent, Resource, StoredContent, TextContent, content_of, size_in_bytes

# Providers scale a picture down until it costs about this much, and read a page of a PDF as text and as a picture.
_TOKENS_PER_IMAGE = 1_600
_TOKENS_PER_PAGE = 2_250
_BYTES_PER_PAGE = 50_000
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")


class Weight(msgspec.Struct, frozen=True, kw_only=True):
    """`size` in bytes of raw content, and an estimate of what it is in tokens."""

    size: int
    tokens: int


def weigh(resources: Iterable[Resource]) -> Weight:
    """What `resources` weigh together, as they would be sent."""
    listed = list(resources)
    return Weight(size=sum(map(size_in_bytes, listed)), tokens=sum(map(_tokens, listed)))


def _tokens(resource: Resource) -> int:
    content = content_of(resource)
    match content:
        case TextContent(text=text):
            return estimate_tokens(text)
        case StoredContent(size=size, chars=chars) if chars is not None:
            return estimate_tokens_of_bytes(size)
        case StoredContent(size=size):
            return _binary_tokens(resource, pages=size // _BYTES_PER_PAGE)
        case BinaryContent(data=data):
            # Pages inside compressed object streams do not show.
            return _binary_tokens(resource, pages=len(_PAGE.findall(data)) or len(data) // _BYTES_PER_PAGE)
        case _:
            assert_never(content)


def _binary_tokens(resource: Resource, *, pages: int) -> int:
    return max(pages, 1) * _TOKENS_PER_PAGE if resource.mime_type == "application/pdf" else _TOKENS_PER_IMAGE
