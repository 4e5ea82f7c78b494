"""Secrets leave a text before anything is derived from it: a digest, a prompt for a summary, a report, a log.

Known by their shape (what vendors issue, tokens in three parts, private keys, passwords in addresses) or by the name
that they are assigned to. It takes time in proportion to the text, whatever the text is. A secret with neither a known
shape nor a telling name, such as a password in prose, is not found.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import msgspec

from jp.context.secret_commands import in_commands
from jp.context.secret_names import SecretKind
from jp.context.secret_shapes import Span, shapes
from jp.context.secret_values import Runs, assigned, lowered_ascii


_SHORTEST = 8
"""Characters of the shortest text that a secret can be told in: it has a name or a shape, too."""

_ENCODED = re.compile(r"%(?:3[AaDd]|40|2[0256])")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_RUN = re.compile(r"[^\s\"'<>\\`]*+")
_LONGEST_RUN = 4_000
_DEEPEST = 2
"""How often words are decoded that are percent-encoded: an address in an address in an address."""

_NEEDED = re.compile(r"[0-9=:>-]")
"""What every secret has in it or before it."""


class Redacted(msgspec.Struct, frozen=True):
    """`text` is the very object that came in where nothing was `found`: the kinds of what was, in their order."""

    text: str
    found: tuple[SecretKind, ...] = ()


def redact(text: str) -> Redacted:
    """`text` with `[redacted:KIND]` in place of each secret; nothing else changes. Again, it finds nothing."""
    if len(text) < _SHORTEST or _NEEDED.search(text) is None:
        return Redacted(text)
    found = _found(text, _DEEPEST)
    if not found:
        return Redacted(text)
    spans = _merged(sorted(found))
    pieces: list[str] = []
    position = 0
    for span in spans:
        pieces += [text[position : span.start], f"[redacted:{span.kind}]"]
        position = span.end
    return Redacted("".join((*pieces, text[position:])), tuple(span.kind for span in spans))


def _found(text: str, depth: int) -> list[Span]:
    lowered = lowered_ascii(text)
    runs = Runs(text)
    found = [*shapes(text, lowered), *assigned(runs, lowered), *in_commands(runs)]
    if depth and "%" in text:
        found += _percent_encoded(text, depth)
    return found


def _percent_encoded(text: str, depth: int) -> Iterator[Span]:
    """What is found in the words that are percent-encoded once these are decoded."""
    done = 0
    for hit in _ENCODED.finditer(text):
        if hit.start() < done:
            continue
        before = _RUN.match(text[max(done, hit.start() - _LONGEST_RUN) : hit.start()][::-1])
        start = hit.start() - (before.end() if before else 0)
        run = _RUN.match(text, hit.end(), hit.end() + _LONGEST_RUN)
        done = run.end() if run else hit.end()
        escapes = [escape.start() - 2 * number for number, escape in enumerate(_ESCAPE.finditer(text, start, done))]
        decoded = _ESCAPE.sub(lambda escape: chr(int(escape[0][1:], 16)), text[start:done])
        for span in _found(decoded, depth - 1):
            ends = (at + 2 * bisect_left(escapes, start + at) for at in (span.start, span.end))
            yield Span(start + next(ends), start + next(ends), span.kind)


def redacted(text: str, known: dict[str, str]) -> str:
    """The text of `redact`: as `known` has it, or learns it now."""
    found = known.get(text)
    if found is None:
        found = known[text] = redact(text).text
    return found


def _merged(spans: Sequence[Span]) -> list[Span]:
    """Of spans that overlap one, with the kind of the first; there is at least one, and they are in order."""
    merged = [spans[0]]
    for span in spans[1:]:
        last = merged[-1]
        if span.start < last.end:
            merged[-1] = Span(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return merged
