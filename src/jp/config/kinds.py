"""Kinds of values that settings have, and what all their sections share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

JsonObject = dict[str, Any]
CachePolicy = Literal["off", "short", "long"]
Effort = Literal["none", "xlow", "low", "medium", "high", "xhigh", "max"]

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Price = Annotated[float, msgspec.Meta(ge=0)]
Cost = Annotated[float, msgspec.Meta(gt=0, description="a number of more than 0")]
RunMode = Literal["ask", "unattended", "edit", "skip"]

MergedText = Annotated[str, msgspec.Meta(extra={"merged": True})]
"""A text that layers may add to: it has the long form `{value, strategy, separator, discard_when_merged}`."""

UniqueTexts = Annotated[tuple[str, ...], msgspec.Meta(extra={"dedup": True})]
"""A list in which a repeated element counts once, unless a layer says `dedup = false`."""

_PORT = "(:([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)"
Url = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"\Ahttps?://([^\s/?#@]*@)?{_HOST}{_PORT}(/[^\s?#]*)?\Z",
        description="an address with http:// or https://",
        examples=["https://api.example.com"],
    ),
]
"""Where requests go. Paths are added to it, so it has neither a query nor a fragment."""

CloudName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"\A[A-Za-z0-9][A-Za-z0-9._:-]*\Z",
        description="a cloud's name for a region, a project or a version",
        examples=["us-east-1"],
    ),
]
"""A region, a project or a version: it becomes part of an address."""

VariableName = Annotated[
    str,
    msgspec.Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]*\Z", description="a variable's name", examples=["MY_API_KEY"]),
]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all sections share."""
