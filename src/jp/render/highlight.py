"""Code in colours, line by line, while it is still coming.

Pygments lexes whole texts. Here each line is lexed once, from the state in which the line before it ended, so that a
string or comment over several lines stays one. Comments between `/*` and `*/` are followed by hand: most lexers want
to see both ends at once. What else spans lines in one pattern of a lexer (a heredoc, say) is coloured as its lines are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from jp.render.code_theme import TokenKind, painter
from jp.render.theme import Look
from jp.render.wrap import Line, paint

Lexed = tuple[TokenKind, str]
Rule = tuple[Callable[[str, int], "re.Match[str] | None"], Any, Any]
"""A pattern, what is made of it (a kind, or a function of the lexer and the match), and where the lexer goes next."""

_LONGEST_LINE = 2000
"""Longer lines (data, minified code) are not coloured: some lexers take more than linear time."""

_STEPS_PER_CHARACTER = 20
_LANGUAGE = re.compile(r"[\w+#.-]+")
_ROOT = "root"
_COMMENT_OPEN, _COMMENT_CLOSE = "/*", "*/"
_COMMENT: TokenKind = ("Comment",)
_STRING: TokenKind = ("Literal", "String")


class Lexer(Protocol):
    """What is used of a Pygments lexer, which has no types of its own."""

    def get_tokens_unprocessed(self, text: str) -> Iterable[tuple[int, TokenKind, str]]:
        """The tokens of a whole text, with their positions."""
        ...


class Highlighter:
    """Colours the lines of one piece of code. `info` is what stands after the fence; its first word is the language."""

    def __init__(self, info: str, look: Look) -> None:
        found = _LANGUAGE.search(info) if look.colour else None
        self._lexer = _lexer(found[0].lower().removeprefix(".")) if found else None
        self._states = _states(self._lexer)
        self._style = painter(look)
        self._stack: list[str] = [_ROOT]
        self._in_comment = False
        self._knows_comments = self._lexer is not None and _knows_comments(self._lexer)

    def line(self, text: str) -> str:
        """The next line of the code, without its line feed, with SGR sequences."""
        if self._lexer is None or len(text) > _LONGEST_LINE:
            return text
        try:
            return paint(self._runs(self._lexer, text))
        except Exception:  # noqa: BLE001 - a lexer's fault must not cost the answer
            self._lexer = None
            return text

    def _runs(self, lexer: Lexer, text: str) -> Line:
        runs: Line = []
        if self._in_comment:
            inside, close, text = text.partition(_COMMENT_CLOSE)
            self._in_comment = not close
            runs.append((inside + close, self._style(_COMMENT)))
        before, comment = self._split_comment(lexer, text)
        for kind, value in self._lex(lexer, f"{before}\n", self._stack):
            style = "" if value.isspace() else self._style(kind)
            if runs and runs[-1][1] == style:
                runs[-1] = (runs[-1][0] + value, style)
            else:
                runs.append((value, style))
        if runs:
            runs[-1] = (runs[-1][0].removesuffix("\n"), runs[-1][1])
        if comment:
            runs.append((comment, self._style(_COMMENT)))
        return [run for run in runs if run[0]]

    def _split_comment(self, lexer: Lexer, text: str) -> tuple[str, str]:
        """The line, and the comment in which it ends and which goes on in the next one."""
        start = text.rfind(_COMMENT_OPEN) if self._knows_comments else -1
        if start < 0 or _COMMENT_CLOSE in text[start + 2 :]:
            return text, ""
        offset = 0
        for kind, value in self._lex(lexer, f"{text}\n", list(self._stack)):
            if offset + len(value) > start:
                if _is(kind, _STRING) or (_is(kind, _COMMENT) and offset < start):
                    return text, ""
                break
            offset += len(value)
        self._in_comment = True
        return text[:start], text[start:]

    def _lex(self, lexer: Lexer, line: str, stack: list[str]) -> Iterator[Lexed]:
        """Lex `line`, starting from the states in `stack` and leaving there those in which it ended."""
        if self._states is None:
            return ((kind, value) for _, kind, value in lexer.get_tokens_unprocessed(line))
        return _lex_from(lexer, self._states, line, stack)


def _is(kind: TokenKind, general: TokenKind) -> bool:
    return kind[: len(general)] == general


def _states(lexer: Any) -> dict[str, list[Rule]] | None:
    """The rules of a lexer that is driven by nothing but rules; None for others, whose lines are lexed on their own."""
    kinds: Any = import_module("pygments.lexer")
    if isinstance(lexer, kinds.RegexLexer) and not isinstance(lexer, kinds.ExtendedRegexLexer):
        return lexer._tokens  # noqa: SLF001 - a lexer does not say otherwise in which state it ended
    return None


def _lex_from(lexer: Lexer, states: dict[str, list[Rule]], line: str, stack: list[str]) -> Iterator[Lexed]:
    """The loop of a Pygments lexer, but that the end of the line is not taken for the end of the text."""
    position = steps = 0
    while position < len(line) and steps < _STEPS_PER_CHARACTER * len(line):
        steps += 1
        found, action, transition = _first_match(states[stack[-1]], line, position)
        if found is None:
            if line[position] == "\n":
                stack[:] = [_ROOT]
            yield (), line[position]
            position += 1
            continue
        if isinstance(action, tuple):
            yield action, found[0]
        elif action is not None:
            yield from ((kind, value) for _, kind, value in action(lexer, found))
        position = found.end()
        if transition is not None:
            _move(stack, transition)


def _first_match(rules: list[Rule], line: str, position: int) -> tuple[re.Match[str] | None, Any, Any]:
    for match_rule, action, transition in rules:
        found = match_rule(line, position)
        if found is not None:
            return found, action, transition
    return None, None, None


def _move(stack: list[str], transition: int | str | tuple[str, ...]) -> None:
    """Follow a rule's transition, in the forms into which Pygments has brought it."""
    if isinstance(transition, int):
        del stack[max(1, len(stack) + transition) :]
    elif isinstance(transition, tuple):
        for state in transition:
            _move(stack, -1 if state == "#pop" else state)
    else:
        stack.append(stack[-1] if transition == "#push" else transition)


@cache
def _lexer(language: str) -> Lexer | None:
    lexers: Any = import_module("pygments.lexers")
    try:
        return lexers.get_lexer_by_name(language)
    except import_module("pygments.util").ClassNotFound:
        return None


@cache
def _knows_comments(lexer: Lexer) -> bool:
    """Whether `/*` begins a comment."""
    lexed = [kind for _, kind, value in lexer.get_tokens_unprocessed("/* x */") if value.strip()]
    return bool(lexed) and all(_is(kind, _COMMENT) for kind in lexed)
