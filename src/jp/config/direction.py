"""Kinds of settings, and which way each may be moved by a layer that the user has not trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

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
"""The base URL of an API. Paths are added to it, so it has neither a query nor a fragment."""

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
    """The base of all sections."""


T = TypeVar("T")


class Neutral(msgspec.Struct, frozen=True):
    """Affects neither consent nor access: any layer may set it."""


class NeedsTrust(msgspec.Struct, frozen=True, kw_only=True):
    """Only the user's own layers set it, and what the user has accepted.

    `defining`: a tool, a server or an account is not there without it. `harmless` are values that any layer may set
    where the user's layers set none. `lasting`: a conversation keeps what `--cfg` says of it.
    """

    defining: bool = False
    harmless: tuple[Any, ...] = ()
    lasting: bool = False


class Ordered(msgspec.Struct, frozen=True, kw_only=True):
    """May only become stricter. `unset` is what no value amounts to; without it, only the strictest value is stricter.

    A value that `order` does not have is compared with nothing: it needs trust. `lasting` is as in `NeedsTrust`.
    """

    order: tuple[Any, ...]
    unset: Any = msgspec.UNSET
    lasting: bool = False

    def allows(self, value: Any, own: Any) -> bool:
        """Return whether `value` is at least as strict as `own`; None means that nothing is set."""
        value, own = self.said(value), self.said(own)
        if _same(value, own) or _same(value, self.order[0]):
            return True
        rank = self._rank(value)
        return rank is not None and (limit := self._rank(own)) is not None and rank <= limit

    def said(self, value: Any) -> Any:
        """Return the value, or the one that an unset value is equal to."""
        return self.unset if value is None and self.unset is not msgspec.UNSET else value

    def _rank(self, value: Any) -> int | None:
        return next((rank for rank, known in enumerate(self.order) if _same(known, value)), None)


class Limit(msgspec.Struct, frozen=True):
    """A number that may only become smaller; no number is no limit."""

    def allows(self, value: float | None, own: float | None) -> bool:
        """Return whether the limit `value` is at least as strict as `own`."""
        return own is None or (value is not None and value <= own)


class Offer(msgspec.Struct, frozen=True):
    """The offer of a tool: never one whose calls would run unasked, or that the user has switched off."""


class CallRules(msgspec.Struct, frozen=True):
    """Rules for calls, of which the first that matches decides: only such may be added as let through less."""


class Denials(msgspec.Struct, frozen=True):
    """Rules for files, of which the last that fits decides: only such may be added as allow nothing."""


class NewNames(msgspec.Struct, frozen=True):
    """Short names: only such may be added as the user has not given to anything."""


class ModelChoice(msgspec.Struct, frozen=True):
    """A model: only of the provider that the user has chosen, where the user has chosen one."""


class InsideWorkspace(msgspec.Struct, frozen=True):
    """Directories: only such as lie in the workspace."""


class Attachments(msgspec.Struct, frozen=True, kw_only=True):
    """Sources: those that run something or reach out have to be accepted before anything is asked with them.

    `schemes` are the ones that stay here.
    """

    schemes: tuple[str, ...]


Direction = (
    Neutral
    | NeedsTrust
    | Ordered
    | Limit
    | Offer
    | CallRules
    | Denials
    | NewNames
    | ModelChoice
    | InsideWorkspace
    | Attachments
)

NEUTRAL = Neutral()
NEEDS_TRUST = NeedsTrust()

Harmless = Annotated[T, NEUTRAL]
"""A setting that any layer may set."""

Guarded = Annotated[T, NEEDS_TRUST]
"""A setting that only the user sets, and what the user has accepted; what `--cfg` says of it ends with the run."""

Defining = Annotated[T, NeedsTrust(defining=True)]
"""The same, where a tool, a server or an account is not there without it."""

RUN_MODES = Ordered(order=("skip", "edit", "ask", "unattended"), unset="ask")
RESULT_MODES = Ordered(order=("skip", "edit", "ask", "unattended"), unset="unattended")


def is_direction(metadata: object) -> bool:
    """Return whether a type's metadata is a direction."""
    return isinstance(metadata, Direction)


def lapses(direction: Direction) -> bool:
    """Return whether what `--cfg` loosens of such a setting ends with the run."""
    return isinstance(direction, CallRules | Denials) or (
        isinstance(direction, NeedsTrust | Ordered) and not direction.lasting
    )


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are the same plain data; Python takes 1, 1.0 and true for equal."""
    if one is msgspec.UNSET or other is msgspec.UNSET:
        return one is other
    return one is other or msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def entry(value: Any) -> Mapping[str, Any]:
    """Return the entries of a table; none for any other value."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
