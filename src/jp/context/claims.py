"""What a model claims and nothing bears out.

A path, a commit or a number has to stand in what the model was shown; a requirement in what the person said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from jp.context.mentions import classified, words_in
from jp.context.summary_schema import StructuredSummary, TouchedFiles, normalised

UNSUPPORTED = "(unsupported)"
"""What a claim becomes in a statement that has to stay."""

_NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:[.,][0-9]+)*(?![\w])")
_DIGITS = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_ATTRIBUTION = re.compile(
    r"(?i)\b(?:user|person|customer|human)(?:'s)?\s+(?:asked|asks|wants?|wanted|requested|said|says|request)\b"
    r"|\b(?:asked|requested|told|wanted)\s+by\s+(?:the\s+)?(?:user|person|customer|human)\b"
)

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})
_AROUND = " .,;:!?\"'`\u2026-*"

_Item = TypeVar("_Item")


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """`unsupported` is how many items left `account`, and statements lost something."""

    account: StructuredSummary
    unsupported: int


class Evidence:
    """Everything that a model was told, to look claims up in.

    Args:
        texts: All that it was shown, before any of it was shortened.
        said: What the person said or answered: requirements have to stand there.
        spoke: Whether a person said any of it; attachments alone are enough.
    """

    def __init__(self, texts: Iterable[str], *, said: Iterable[str] = (), spoke: bool) -> None:
        self._text = "\n".join(texts)
        self._said = "\n".join(map(_wording, said))
        self.spoke = spoke

    @cached_property
    def _numbers(self) -> frozenset[str]:
        found = set(_DIGITS.findall(self._text))
        return frozenset(found | {plain for number in found for plain in _spellings(number)})

    @cached_property
    def _lower(self) -> str:
        return self._text.lower()

    def bears_out(self, claim: str, kind: str) -> bool:
        """Whether `claim` stands there: a number as a number, a commit by its beginning, anything else as it is."""
        if kind == "number":
            return not self._numbers.isdisjoint({claim, *_spellings(claim)})
        if kind == "commits":
            return claim in self._lower
        return claim in self._text

    def is_said(self, requirement: str) -> bool:
        """Return whether the person said these words, in any spacing and capitals, from one word's end to another's."""
        wanted = _wording(requirement)
        return bool(wanted) and re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", self._said) is not None


def check_claims(account: StructuredSummary, evidence: Evidence) -> Checked:
    """`account` without what `evidence` does not bear out.

    A requirement stays only if the person said it, word for word. An item of another list goes whole. What has to stay
    (the goal, the next step, the hypothesis, how to test) keeps its words, with a note in place of the claim. Numbers
    of one digit are how people count and are not looked up. Where no person spoke, nobody asked for anything.
    """
    gate = _Gate(evidence)
    decisions = gate.items(account.decisions, lambda made: f"{made.what}\n{made.why}")
    mended = gate.items(account.errors_and_fixes, lambda met: f"{met.error}\n{met.fix}")
    requirements = tuple(text for text in account.requirements if evidence.is_said(text))
    gate.unsupported += len(account.requirements) - len(requirements)
    checked = replace(
        account,
        goal=gate.statement(account.goal),
        next_step=gate.statement(account.next_step),
        hypothesis=gate.statement(account.hypothesis),
        test_command=gate.statement(account.test_command),
        requirements=requirements,
        constraints=gate.texts(account.constraints),
        decisions=decisions,
        done=gate.texts(account.done),
        open=gate.texts(account.open),
        errors_and_fixes=mended,
        files=TouchedFiles(read=gate.paths(account.files.read), modified=gate.paths(account.files.modified)),
        commands=gate.texts(account.commands),
        open_questions=gate.texts(account.open_questions),
    )
    return Checked(account=checked, unsupported=gate.unsupported)


def claims_in(text: str) -> list[tuple[str, str]]:
    """The claims in `text`, each with its kind: `number`, or a class of `jp.context.mentions`."""
    found = [(number, "number") for number in _NUMBER.findall(text) if len(number) > 1]
    for word in words_in(text):
        kind, value = classified(word)
        if kind:
            found.append((value, kind))
    return found


class _Gate:
    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.unsupported = 0

    def items(self, items: Sequence[_Item], text_of: Callable[[_Item], str]) -> tuple[_Item, ...]:
        kept = tuple(item for item in items if not self._missing(text_of(item)))
        self.unsupported += len(items) - len(kept)
        return kept

    def texts(self, texts: Sequence[str]) -> tuple[str, ...]:
        return self.items(texts, lambda text: text)

    def paths(self, paths: Sequence[str]) -> tuple[str, ...]:
        kept = tuple(path for path in paths if self._evidence.bears_out(path, "paths"))
        self.unsupported += len(paths) - len(kept)
        return kept

    def statement(self, text: str) -> str:
        missing = self._missing(text)
        for claim in sorted(missing, key=len, reverse=True):
            text = text.replace(claim, UNSUPPORTED)
        self.unsupported += bool(missing)
        return text

    def _missing(self, text: str) -> list[str]:
        missing = [claim for claim, kind in claims_in(text) if not self._evidence.bears_out(claim, kind)]
        if not self._evidence.spoke:
            missing += [found.group() for found in _ATTRIBUTION.finditer(text)]
        return missing


def _wording(text: str) -> str:
    """Return what spacing, capitals, quotation marks and the punctuation around a text do not change."""
    return normalised(text.translate(_QUOTES)).strip(_AROUND)


def _spellings(number: str) -> tuple[str, ...]:
    """`number` without what groups its digits."""
    return (number.replace(",", ""),) if "," in number else ()
