"""Secrets leave a text before anything is derived from it: a digest, a prompt for a summary, a report, a log.

Known by their shape (what vendors issue, tokens in three parts, private keys, passwords in addresses) or by the name
that they are assigned to. It takes time in proportion to the text, whatever the text is. A secret with neither a known
shape nor a telling name, such as a password in prose, is not found.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from jp.context.secret_commands import in_commands
from jp.context.secret_names import SecretKind
from jp.context.secret_shapes import Span, shapes
from jp.context.secret_values import Runs, assigned, lowered_ascii


class Redacted(msgspec.Struct, frozen=True):
    """`text` is the very object that came in where nothing was `found`: the kinds of what was, in their order."""

    text: str
    found: tuple[SecretKind, ...] = ()


def redact(text: str) -> Redacted:
    """`text` with `[redacted:KIND]` in place of each secret; nothing else changes. Again, it finds nothing."""
    lowered = lowered_ascii(text)
    runs = Runs(text)
    found = [*shapes(text, lowered), *assigned(runs, lowered), *in_commands(runs)]
    if not found:
        return Redacted(text)
    spans = _merged(sorted(found))
    pieces: list[str] = []
    position = 0
    for span in spans:
        pieces += [text[position : span.start], f"[redacted:{span.kind}]"]
        position = span.end
    return Redacted("".join((*pieces, text[position:])), tuple(span.kind for span in spans))


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
