"""Search over texts: passages without secrets, safe full-text queries, and a plain ranking for hosts without an index.

A text is redacted as a whole and then cut at line ends, so that no secret is halved by a cut. Offsets count bytes of
UTF-8 in the original, as those of a recalled page do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from jp.context.redaction import redact, secrets_in

PASSAGE_CHARS = 2400
"""Characters of the longest passage: five of them fit into one tool result."""

_MOST_WORDS = 32
_SHORTEST_PREFIX = 3
_WORD = re.compile(r"\w+")


class Passage(msgspec.Struct, frozen=True):
    """A part of a text without its secrets, and the byte of the original at which it begins."""

    offset: int
    text: str


class IndexedPassage(msgspec.Struct, frozen=True, kw_only=True):
    """A passage of a conversation.

    `sha256` names the original content, `size` is its length in bytes. `tool` is empty for a message or an attachment.
    `about` are words that describe the content: the call with its short arguments, a URI, or who wrote it. `entry` is
    the id of the log entry.
    """

    sha256: str
    entry: str
    turn: int
    tool: str
    about: str
    offset: int
    size: int
    text: str


def passages_of(text: str, most: int = PASSAGE_CHARS) -> Iterator[Passage]:
    """Yield the passages of `text` in order, each from at most `most` characters or from a longer secret."""
    spans = secrets_in(text)
    start = offset = place = 0
    while start < len(text):
        end = _end_of_passage(text, start, most)
        pieces: list[str] = []
        position = start
        while place < len(spans) and spans[place].start < end:
            span = spans[place]
            pieces += [text[position : span.start], f"[redacted:{span.kind}]"]
            position, end, place = span.end, max(end, span.end), place + 1
        yield Passage(offset, _storable("".join((*pieces, text[position:end]))))
        offset += len(text[start:end].encode("utf-8", "surrogatepass"))
        start = end


def line_without_secrets(text: str, most: int) -> str:
    """Return `text` in one line of at most `most` characters, without its secrets."""
    line = " ".join(_storable(redact(text).text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def words_of(query: str) -> list[str]:
    """Return what a free text asks for, each once: a word, or parts that stand together such as `src main py`."""
    readable = unicodedata.normalize("NFC", _storable(query)).lower()
    words = (" ".join(_WORD.findall(part.replace("_", " "))) for part in readable.split())
    return [word for word in dict.fromkeys(words) if word][:_MOST_WORDS]


def match_expressions(query: str) -> list[str]:
    """Return FTS5 expressions for a free text, the strictest first: all words, any of them, any beginning of a word.

    Every word is quoted, so no character of the query is an operator. No expression where the query has no word.
    """
    words = words_of(query)
    if not words:
        return []
    quoted = [f'"{word}"' for word in words]
    beginnings = [f'"{word}"*' for word in words if len(word) >= _SHORTEST_PREFIX]
    expressions = [" AND ".join(quoted), " OR ".join(quoted), " OR ".join(beginnings)]
    return list(dict.fromkeys(expression for expression in expressions if expression))


def rank_plainly(passages: Iterable[IndexedPassage], query: str, limit: int) -> list[IndexedPassage]:
    """Return the passages with most words of the query, in log order where they have as many. It needs no index."""
    words = words_of(query)
    counted: list[tuple[int, int, IndexedPassage]] = []
    for position, passage in enumerate(passages):
        present = " ".join(words_in(f"{passage.about}\n{passage.text}"))
        count = sum(f" {word} " in f" {present} " for word in words)
        if count:
            counted.append((-count, position, passage))
    return [passage for _, _, passage in sorted(counted, key=lambda one: one[:2])[:limit]]


def words_in(text: str) -> list[str]:
    """Return all words of `text` in order, in small letters."""
    return _WORD.findall(unicodedata.normalize("NFC", text).lower().replace("_", " "))


def window(text: str, words: Sequence[str], most: int) -> str:
    """Return at most `most` bytes of `text`, from the first line on behind which most different `words` stand."""
    data = text.encode()
    if len(data) <= most:
        return text
    wanted = [word.partition(" ")[0].encode() for word in words]
    lowered = data.lower()
    places = sorted(found.start() for word in wanted for found in re.finditer(re.escape(word), lowered))
    starts = list(dict.fromkeys(data.rfind(b"\n", 0, place) + 1 for place in places))

    def count(start: int) -> int:
        return sum(lowered.find(word, start, start + most) >= 0 for word in wanted)

    best = max(starts, key=count, default=0)
    if not count(best):
        # The line is longer than the window: the word itself is better than the line's beginning.
        best = places[0] if places else 0
    start = min(best, len(data) - most)
    return data[start : start + most].decode("utf-8", "ignore")


def _end_of_passage(text: str, start: int, most: int) -> int:
    end = start + most
    if end >= len(text):
        return len(text)
    return (text.rfind("\n", start + most // 2, end) + 1) or end


def _storable(text: str) -> str:
    """Return `text` without halves of surrogate pairs, which no database takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
