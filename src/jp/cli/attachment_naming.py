"""Which of the attachments of a conversation somebody means. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from jp.attachment.likeness import alikeness
from jp.errors import UsageError
from jp.likeness import ALIKE

_SHOWN = 5
_LIST = "list them with `jp attachment ls`"


def meant(typed: str, canonical: str | None, declared: Mapping[str, str]) -> str:
    """The declaration that `typed` stands for: as it is listed, as a path or URI of the same, or a part of only one.

    `canonical` is what `typed` would be declared as, None where it is malformed; `declared` has the canonical form of
    each declaration. A part begins where a word does.

    Raises:
        UsageError: it stands for none of them, or for several.
    """
    if typed in declared:
        return typed
    same = [text for text, form in declared.items() if canonical is not None and form == canonical]
    found = same or _having(typed, declared)
    if len(found) == 1 or same:
        return found[0]
    if not found:
        raise UsageError(f"{typed!r} is not attached", hint=_near(typed, declared))
    shown = ", ".join(map(repr, found[:_SHOWN]))
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    raise UsageError(f"{typed!r} is a part of {len(found):,} attachments: {shown}{more}", hint="give more of it")


def _having(part: str, declared: Mapping[str, str]) -> list[str]:
    """The declarations that have `part`: excludes where it begins with `!`, or where no other has it."""
    body = part.removeprefix("!")
    if not any(map(str.isalnum, body)):
        return []
    beginning = r"(?<![^\W_])" if body[0].isalnum() else ""
    expression = re.compile(beginning + re.escape(body))
    found = [text for text in declared if expression.search(unquote(text)) or expression.search(text)]
    includes = [] if part.startswith("!") else [text for text in found if not text.startswith("!")]
    return includes or [text for text in found if text.startswith("!")]


def _near(typed: str, declared: Mapping[str, str]) -> str:
    scores = [(alikeness(typed, unquote(text).replace("file:", "", 1)), text) for text in declared]
    near = [text for score, text in sorted(scores, reverse=True) if score >= ALIKE][:2]
    return f"did you mean {' or '.join(map(repr, near))}?" if near else _LIST
