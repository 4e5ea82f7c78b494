"""What names the part of a request that never changes: the tools and the system prompt.

Two requests with one key say the same. A provider's cache compares bytes, so beside the key stands the digest of what
goes over the wire: where keys are equal and digests are not, somebody renders in an order that changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NoReturn, assert_never

import msgspec

from jp.errors import JpError, reason_of

_VERSION = "static-prefix 1"


class PrefixError(JpError):
    """The tools of a request are no tools that a provider takes."""


class ToolSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as it is sent: `wire` is its JSON, byte for byte. `kind` tells what a provider offers from what is run."""

    name: str
    wire: bytes
    kind: str = "function"


class PrefixKey(msgspec.Struct, frozen=True, kw_only=True):
    """`key` names what is said, `wire_digest` the bytes that say it; both are a sha256 in hexadecimal digits."""

    key: str
    wire_digest: str


class _Number(str):
    """A number as it is spelled: `1`, `1.0` and `1e0` are other bytes."""

    __slots__ = ()


class _Object(tuple[tuple[str, "_Json"], ...]):
    """The members of a JSON object as they stand there; names may repeat."""

    __slots__ = ()


_Json = _Number | _Object | str | bool | list["_Json"] | None


def static_prefix_key(system: Sequence[str], tools: Sequence[ToolSchema], *, provider: str, model: str) -> PrefixKey:
    """The key of a static prefix.

    Neither the order of the tools nor that of the keys in their JSON changes it; everything else does: the order in
    lists, the spelling of numbers, how the system prompt is divided, characters that only look alike.

    Raises:
        PrefixError: two tools have one name, or what a tool sends is not JSON.
    """
    _check_names(tools)
    head = [_utf8(text) for text in (_VERSION, provider, model, str(len(system)), *system)]
    canonical = sorted((_utf8(tool.kind), _utf8(tool.name), _canonical(tool)) for tool in tools)
    as_sent = [(_utf8(tool.kind), _utf8(tool.name), tool.wire) for tool in tools]
    return PrefixKey(key=_digest(head, canonical), wire_digest=_digest(head, as_sent))


def compare_prefixes(before: PrefixKey, after: PrefixKey) -> Literal["same", "reordered", "changed"]:
    """What became of a prefix from one request to the next.

    `reordered` misses the cache although nothing else was said: whoever renders has to put things in one order.
    """
    if before.key != after.key:
        return "changed"
    return "same" if before.wire_digest == after.wire_digest else "reordered"


def _check_names(tools: Iterable[ToolSchema]) -> None:
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise PrefixError(f"there are two tools called {tool.name!r}", hint="rename or disable one of them")
        seen.add(tool.name)


def _canonical(tool: ToolSchema) -> bytes:
    """What `tool` says, whatever the order in which the members of its objects stand."""
    try:
        value: _Json = json.loads(
            tool.wire, parse_int=_Number, parse_float=_Number, parse_constant=_refuse, object_pairs_hook=_Object
        )
        return b"".join(_fields(value))
    except (ValueError, RecursionError) as error:
        raise PrefixError(f"the tool {tool.name!r} does not send JSON: {reason_of(error)}") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _fields(value: _Json) -> Iterator[bytes]:
    """`value` as fields of which each says how long it is, so that no two values give the same bytes."""
    match value:
        case None | True | False:
            yield _field(b"c", repr(value).encode())
        case _Number():
            yield _field(b"n", value.encode())
        case str():
            yield _field(b"s", _utf8(value))
        case _Object():
            members = sorted(((_utf8(name), item) for name, item in value), key=_name)
            yield _field(b"o", b"".join(_field(b"k", name) + b"".join(_fields(item)) for name, item in members))
        case list():
            yield _field(b"l", b"".join(b"".join(_fields(item)) for item in value))
        case _:
            assert_never(value)


def _name(member: tuple[bytes, _Json]) -> bytes:
    return member[0]


def _field(kind: bytes, content: bytes) -> bytes:
    return b"%b%d:%b" % (kind, len(content), content)


def _digest(head: Iterable[bytes], tools: Iterable[tuple[bytes, ...]]) -> str:
    whole = hashlib.sha256()
    for part in (*head, *(part for tool in tools for part in tool)):
        whole.update(_field(b"", part))
    return whole.hexdigest()


def _utf8(text: str) -> bytes:
    """Half of a surrogate pair, which JSON can spell, counts as the three bytes that it would have."""
    return text.encode("utf-8", "surrogatepass")
