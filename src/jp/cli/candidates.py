"""Which conversations a typed text means: the grammar of targets and of labels. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

import msgspec

from jp.conversation.ids import ConversationId
from jp.errors import UsageError
from jp.likeness import ALIKE

_NAME = re.compile(r"[^\s=@,:]+")
_HINT = "write it as K=V, such as area=lexer, or just K"


def parse_labels(texts: Iterable[str], *, option: str) -> dict[str, str]:
    """Names and values; of a name that is given twice the last value.

    Raises:
        UsageError: one of them is none; it names `option`.
    """
    return dict(_parsed(text, option) for text in texts)


def check_name(text: str, *, option: str) -> str:
    """`text`, which is the name of a label.

    Raises:
        UsageError: it cannot be; it names `option`.
    """
    if _NAME.fullmatch(text) is None or not text.isprintable():
        raise UsageError(f"{option} cannot be {text!r}", hint="a label's name has no spaces and none of = @ , :")
    return text


def has_labels(labels: Mapping[str, str], wanted: Iterable[str]) -> bool:
    """Whether all of `wanted` are there: `K=V` with this value, `K` with any."""
    for text in wanted:
        name, equals, value = text.partition("=")
        if name not in labels or (equals and labels[name] != value):
            return False
    return True


def label_text(name: str, value: str) -> str:
    """A label as it is written."""
    return f"{name}={value}" if value else name


def _parsed(text: str, option: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not value.isprintable() and value:
        raise UsageError(f"{option} cannot be {text!r}", hint=_HINT)
    if _NAME.fullmatch(name) is None or not name.isprintable():
        raise UsageError(f"{option} cannot be {text!r}", hint=_HINT)
    return name, value


PICK = "?"
"""The target that opens the picker; what follows it is the first filter."""

_PREFIX = "jp-c"
_NEAR = 3
_COMPARED = 1000
_COMPARED_CHARS = 100


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as far as it has to be known to choose it. `title` is what a person calls it.

    `last_activity` is in seconds since the Unix epoch, `pinned_at` empty where it is not pinned.
    """

    id: ConversationId
    title: str
    labels: Mapping[str, str] = {}
    last_activity: float = 0.0
    pinned_at: str = ""
    is_archived: bool = False


class Active(msgspec.Struct, frozen=True):
    """The conversation that is active in this session."""


class Previous(msgspec.Struct, frozen=True):
    """The one that was active before."""


class Last(msgspec.Struct, frozen=True):
    """The one that was used last in the workspace."""


class Picked(msgspec.Struct, frozen=True):
    """The one that is picked from a list, which begins with those that match `text`."""

    text: str


class Identified(msgspec.Struct, frozen=True):
    """The one whose id begins with `digits`."""

    digits: str
    text: str


class Labelled(msgspec.Struct, frozen=True):
    """The one with a label: `K=V`, or `K` with any value."""

    label: str


class Titled(msgspec.Struct, frozen=True):
    """The one whose title is `text`, or has it in it."""

    text: str


Named = Identified | Labelled | Titled
"""What is looked for among the conversations of a workspace."""

Target = Active | Previous | Last | Picked | Named

_WORDS: dict[str, Target] = {".": Active(), "prev": Previous(), "last": Last()}


def parse_target(text: str) -> Target:
    """Read a target.

    Raises:
        UsageError: it is empty, or names a label that there cannot be.
    """
    written = text.strip()
    if not written:
        raise UsageError(
            "an empty text names no conversation",
            hint="name an id, a title, '.', 'prev', 'last' or '@LABEL'; `jp conversation ls` lists them",
        )
    if written in _WORDS:
        return _WORDS[written]
    if written.startswith(PICK):
        return Picked(written.removeprefix(PICK).strip())
    if written.startswith("@"):
        label = written.removeprefix("@")
        check_name(label.partition("=")[0], option="the label of a target")
        return Labelled(label)
    digits = written.lower().removeprefix(_PREFIX)
    is_id = digits.isascii() and digits.isdecimal()
    return Identified(digits, written) if is_id else Titled(written)


def is_titled(text: str) -> bool:
    """Return whether a word is a target only as a part of a title: no option, id, label or word such as `prev`."""
    try:
        return not text.startswith("-") and isinstance(parse_target(text), Titled)
    except UsageError:
        return False


def matching(target: Named, candidates: Sequence[Candidate], *, archived: bool) -> list[Candidate]:
    """What `target` means, in no order; one where something is named exactly.

    Archived conversations are found by their ids. Else they are left out, or with `archived` all others are.
    """
    wanted = [candidate for candidate in candidates if candidate.is_archived == archived]
    match target:
        case Identified(digits=digits, text=text):
            found = [candidate for candidate in candidates if candidate.id.digits.startswith(digits)]
            exact = [candidate for candidate in found if candidate.id.digits == digits]
            return exact or found or _titled(text, wanted)
        case Labelled(label=label):
            return [candidate for candidate in wanted if has_labels(candidate.labels, (label,))]
        case Titled(text=text):
            return _titled(text, wanted)
        case _:
            assert_never(target)


def _titled(text: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    wanted = text.casefold()
    found = [candidate for candidate in candidates if wanted in candidate.title.casefold()]
    return [candidate for candidate in found if candidate.title.casefold() == wanted] or found


def in_order(candidates: Iterable[Candidate], active: ConversationId | None = None) -> list[Candidate]:
    """The active one, the pinned ones (pinned last first), and the rest (used last first)."""

    def place(candidate: Candidate) -> tuple[bool, str, float, int]:
        return candidate.id == active, candidate.pinned_at, candidate.last_activity, candidate.id.deciseconds

    return sorted(candidates, key=place, reverse=True)


def near(text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Up to three of those that were used last whose titles, or words in these, are spelled much like `text`."""
    from difflib import SequenceMatcher

    wanted = text[:_COMPARED_CHARS].casefold()
    matcher = SequenceMatcher(b=wanted, autojunk=False)

    def likeness(candidate: Candidate) -> float:
        best = 0.0
        for phrase in _phrases(candidate.title[:_COMPARED_CHARS].casefold(), len(wanted.split())):
            matcher.set_seq1(phrase)
            if matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE:
                best = max(best, matcher.ratio())
        return best

    newest = sorted(candidates, key=lambda candidate: candidate.last_activity, reverse=True)[:_COMPARED]
    alike = [(likeness(candidate), candidate) for candidate in newest]
    alike = [item for item in alike if item[0] >= ALIKE]
    return [candidate for _, candidate in sorted(alike, key=lambda item: item[0], reverse=True)[:_NEAR]]


def _phrases(title: str, count: int) -> set[str]:
    """A title, and every run of `count` words in it."""
    words = title.split()
    runs = {" ".join(words[start : start + count]) for start in range(len(words) - count + 1)}
    return {title, *runs}
