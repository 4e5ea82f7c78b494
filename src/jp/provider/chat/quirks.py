"""What differs between servers that speak Chat Completions."""

from __future__ import annotations

from typing import Literal, assert_never

import msgspec

from jp.provider.arrangement import plain_id
from jp.provider.base import Abilities
from jp.provider.schemas import PLAIN, Strictness
from jp.provider.showing import IMAGES, PDF

CallIds = Literal["any", "short"]

_LONGEST = 40
"""OpenAI's own server takes no more characters."""

_CUT = 32
"""How much is left of a longer one: a number may follow where ids repeat."""

_SHORT = 9
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def plain(call_id: str, number: int) -> str:
    """An id that most servers take."""
    return plain_id(call_id if len(call_id) <= _LONGEST else call_id[:_CUT], number)


def short(call_id: str, number: int) -> str:
    """An id of nine letters and digits: the one that was given where it is such, else always the same for the same."""
    if number == 1 and len(call_id) == _SHORT and call_id.isascii() and call_id.isalnum():
        return call_id
    from hashlib import sha256

    rest = int.from_bytes(sha256(f"{number} {call_id}".encode(errors="surrogatepass")).digest(), "big")
    digits: list[str] = []
    for _ in range(_SHORT):
        rest, digit = divmod(rest, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)


def wire_id(call_id: str, number: int, *, kind: CallIds) -> str:
    """The id under which the `number`th call of an id goes back to a server."""
    match kind:
        case "any":
            return plain(call_id, number)
        case "short":
            return short(call_id, number)
        case _:
            assert_never(kind)


ReturnReasoning = Literal["none", "reasoning_content", "reasoning", "text"]
Structured = Literal["json_schema", "json_object_schema", "json_object", "none"]


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """What a server wants otherwise than others.

    `max_tokens_name` is what the longest output is called, `system_role` the role of the system prompt; with `user` it
    stands in front of the first request. `return_reasoning` is how earlier reasoning goes back: under a field of this
    name, as text between tags, or not at all. `structured` is how an answer is held to a schema, `strictness` what its
    grammar takes. Without `tool_choice` the choice of tool is told in words. `images`, `documents` (PDF) and `media`
    (audio and video) are what can be attached, where the model takes it as well. `stream_usage` asks for the count of
    tokens. With `text_parts` a message of text is a list of parts as well: cache markers need that, and few servers
    take it everywhere. `numbers_calls` gives earlier calls an index. `think_tags` looks for reasoning at the beginning
    of the text. `call_ids` are of any form, or of nine letters and digits (`short`). Without `user_after_tool` an
    answer stands between a tool's result and what the user says next. `probes` asks again for one token, as a whole,
    where a stream ends before its first event: small servers begin it before they have looked at the request.
    """

    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer", "user"] = "system"
    return_reasoning: ReturnReasoning = "none"
    structured: Structured = "json_schema"
    strictness: Strictness = PLAIN
    tool_choice: bool = True
    images: bool = True
    documents: bool = False
    media: frozenset[str] = frozenset()
    stream_usage: bool = True
    text_parts: bool = False
    numbers_calls: bool = False
    think_tags: bool = True
    call_ids: CallIds = "any"
    user_after_tool: bool = True
    probes: bool = False


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a request is for.

    `provider` is the id under which it is known, and which its opaque metadata is kept with; `kind` says whose table
    has its models.
    """

    provider: str
    kind: str
    quirks: Quirks = Quirks()


def taken_media(quirks: Quirks, abilities: Abilities) -> frozenset[str]:
    """The media types that can be shown besides text: those that server and model take."""
    taken = quirks.media if abilities.recordings else frozenset[str]()
    if quirks.images and abilities.images:
        taken |= IMAGES
    if quirks.documents and abilities.documents:
        taken |= {PDF}
    return taken
