"""What the picker's keys do to its list. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from jp.cli.candidates import Candidate
from jp.cli.labels import label_text

_PREFIX = "jp-c"


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A list and what is selected in it.

    `texts` are what each of `candidates` is searched in. `shown` are the indexes of those that match `filter`, by
    their titles first, and `selected` is a position in `shown`.
    """

    candidates: tuple[Candidate, ...]
    texts: tuple[str, ...]
    shown: tuple[int, ...]
    filter: str = ""
    selected: int = 0

    @property
    def choice(self) -> Candidate | None:
        """What is selected; None where nothing matches."""
        return self.candidates[self.shown[self.selected]] if self.shown else None


def opened(candidates: Sequence[Candidate], *, text: str = "") -> State:
    """The list as it opens, with `text` typed already."""
    state = State(
        candidates=tuple(candidates),
        texts=tuple(map(_searched, candidates)),
        shown=tuple(range(len(candidates))),
    )
    return typed(state, text)


def typed(state: State, text: str) -> State:
    """With more of the filter."""
    visible = "".join(character if character.isprintable() else " " for character in text)
    return _filtered(state, state.filter + visible)


def erased(state: State) -> State:
    """Without the last character of the filter."""
    return _filtered(state, state.filter[:-1])


def word_erased(state: State) -> State:
    """Without the last word of the filter."""
    head, space, _ = state.filter.rstrip().rpartition(" ")
    return _filtered(state, head + space)


def cleared(state: State) -> State:
    """Without a filter."""
    return _filtered(state, "")


def moved(state: State, by: int) -> State:
    """With another one selected, `by` places further down; not beyond the ends."""
    last = max(0, len(state.shown) - 1)
    return replace(state, selected=min(max(0, state.selected + by), last))


def first_line(state: State, rows: int, *, top: int) -> int:
    """The first position that is visible in `rows` lines, where `top` was: what is selected is visible."""
    highest = max(0, len(state.shown) - rows)
    return min(max(min(top, state.selected), state.selected - rows + 1), highest)


def _searched(candidate: Candidate) -> str:
    labels = " ".join(label_text(name, value) for name, value in sorted(candidate.labels.items()))
    return f"{candidate.title}\n{candidate.id.digits}\n{labels}".casefold()


def _filtered(state: State, text: str) -> State:
    """What is selected stays so as long as it matches."""
    # Of an id only the digits count: with its prefix, the letters of that would match everything.
    words = [word.removeprefix(_PREFIX) for word in text.casefold().split()]
    found = [index for index in range(len(state.texts)) if all(word in state.texts[index] for word in words)]
    titles = [state.texts[index].partition("\n")[0] for index in found]
    by_title = [all(word in title for word in words) for title in titles]
    shown = tuple(
        index for in_title in (True, False) for index, is_so in zip(found, by_title, strict=True) if is_so is in_title
    )
    choice = state.shown[state.selected] if state.shown else None
    leads = choice in found and (by_title[found.index(choice)] or not any(by_title))
    selected = shown.index(choice) if choice is not None and leads and text else 0
    return replace(state, filter=text, shown=shown, selected=selected)
