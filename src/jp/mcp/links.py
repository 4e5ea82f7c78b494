"""Resources that a tool's result only links to: read at once through the session, within bounds.

A model has no other way to them: `refresh_resource` takes what the user attached and nothing that a tool has named
(a server could send it anywhere), and a tool for reading would be one more that every server's every user is asked
about. What is delivered is bounded like any result, so that what nobody needs costs little; what is large, is no text,
or is one of many stays a link, which a user may attach.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mcp_types as types

MOST_READ = 4
"""So many links of one result are read."""

_LARGEST = 256 * 1024
"""In bytes, as the server says."""

_TEXTUAL = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


def worth_reading(content: Iterable[types.ContentBlock]) -> list[types.ResourceLink]:
    """The links of a result that are read at once; none where there are more than a few."""
    links = [item for item in content if item.type == "resource_link"]
    return [link for link in links if _is_small_text(link)] if len(links) <= MOST_READ else []


def _is_small_text(link: types.ResourceLink) -> bool:
    """What a link does not say is not held against it."""
    return (link.mime_type is None or is_textual(link.mime_type)) and (link.size or 0) <= _LARGEST


def is_textual(mime_type: str) -> bool:
    """Whether what is of this type is text."""
    return mime_type.startswith(_TEXTUAL) or mime_type.endswith(("+json", "+xml"))
