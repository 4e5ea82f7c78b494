"""How much a turn's resources weigh in tokens, before anybody pays for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import assert_never

from jp.context.estimate import estimate_tokens, estimate_tokens_of_bytes
from jp.conversation.resource import BinaryContent, Resource, StoredContent, TextContent, content_of

# Providers scale a picture down until it costs about this much, and read a page of a PDF as text and as a picture.
_TOKENS_PER_IMAGE = 1_600
_TOKENS_PER_PAGE = 2_250
_BYTES_PER_PAGE = 50_000
_PAGE = re.compile(rb"/Type\s*/Page(?![a-zA-Z])")


def tokens_of(resources: Iterable[Resource]) -> int:
    """About how many tokens `resources` have together, as they would be sent."""
    return sum(map(_tokens, resources))


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
