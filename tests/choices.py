"""Choices for Hypothesis strategies that make many: it draws them all at once.

A draw of its own for each of them takes a hundred times as long: hypothesis looks at every draw by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec
from hypothesis import strategies as st

T = TypeVar("T")


class Choices:
    """Chooses by the bytes of a tape, and the first of all from where it ends; so what fails shrinks to few choices."""

    def __init__(self, tape: bytes) -> None:
        self._tape = iter(tape)

    def below(self, bound: int) -> int:
        """A number from 0 to `bound - 1`."""
        size = ((bound - 1).bit_length() + 7) // 8
        return int.from_bytes(islice(self._tape, size), "big") % bound

    def pick(self, among: Sequence[T]) -> T:
        return among[self.below(len(among))]

    def one_in(self, number: int) -> bool:
        """Whether something happens that does once in `number` times."""
        return self.below(number) == number - 1

    def some(self, among: Sequence[T], *, most: int, least: int = 0) -> list[T]:
        """From `least` to `most` of them, in any order, and perhaps again and again."""
        return [self.pick(among) for _ in range(least + self.below(most - least + 1))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        left = list(values)
        return [left.pop(self.below(len(left))) for _ in values]


def choices(length: int = 400) -> st.SearchStrategy[Choices]:
    """Choices of which the first `length`, more or less, are drawn."""
    return st.binary(min_size=length, max_size=length).map(Choices)


def accepted(annotation: Any, candidates: Sequence[Any]) -> list[Any]:
    """Those of the candidates, and of the words that the annotation names, that a field so annotated takes."""
    return [value for value in (*candidates, *_words(annotation)) if _accepts(annotation, value)]


def _words(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [word for member in get_args(annotation) for word in _words(member)]


def _accepts(annotation: Any, value: object) -> bool:
    try:
        msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        return False
    return True
