"""Declarations of options that Typer does not have: a value that is optional, and a bound."""

from __future__ import annotations

from collections.abc import Callable

from typer.models import OptionInfo


class OptionalValue(OptionInfo):
    """An option that takes a value only with `=`; bare, it means `bare`."""

    def __init__(
        self, *names: str, bare: str, metavar: str, help_text: str, reads: Callable[[str], bool] | None = None
    ) -> None:
        super().__init__(default=..., param_decls=names, metavar=f"[={metavar}]", help=help_text)
        self.bare = bare
        self.reads = reads


class BoundValue(OptionalValue):
    """An option that also takes the next word where that is a bound of a range of turns, or `reads` as one."""


class SwitchedValue(OptionalValue):
    """An option and its opposite, whose values come to one list in the order in which they are typed.

    `off` are the forms of the opposite; `MARK` stands before their values.
    """

    MARK = "!"

    def __init__(self, *names: str, off: tuple[str, ...], bare: str, metavar: str, help_text: str) -> None:
        super().__init__(*names, *off, bare=bare, metavar=metavar, help_text=help_text)
        self.name = max(names, key=len)
        self.off = off


def is_usual_profile(word: str) -> bool:
    """Return whether `word` is a profile of compaction that comes with jp."""
    return word in {"default", "heavy", "light"}


def optional_value(
    *names: str, bare: str, metavar: str, help_text: str, reads: Callable[[str], bool] | None
) -> OptionalValue:
    """Declare `--name[=METAVAR]`, for use inside `Annotated[str | None, ...]` with the default None.

    `bare` is the value that the option has where it is given without one. It never takes the next word, and refuses one
    that `reads` as its value: None where any text is one.
    """
    return OptionalValue(*names, bare=bare, metavar=metavar, help_text=help_text, reads=reads)


def switched_value(*names: str, off: tuple[str, ...], bare: str, metavar: str, help_text: str) -> SwitchedValue:
    """Declare `--name[=METAVAR]` and its opposite, for use inside `Annotated[list[str] | None, ...]`.

    A value of the forms `off` begins with `SwitchedValue.MARK`.
    """
    return SwitchedValue(*names, off=off, bare=bare, metavar=metavar, help_text=help_text)


def bound_value(*names: str, bare: str, help_text: str, reads: Callable[[str], bool] | None = None) -> BoundValue:
    """Declare `--from BOUND` and its like: with `=`, with the next word where it is a bound, or bare.

    A next word that `reads` as a mistyped bound is taken, too, so that the command can refuse it.
    """
    return BoundValue(*names, bare=bare, metavar="BOUND", help_text=help_text, reads=reads)
