"""Edits of a file apply exactly, or leave it as it was."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from choices import choices
from file_calls import invocation
from jp.tool.files.changes import Edit
from jp.tool.files.write_tools import ModifyFile, TextForm, taken_apart
from plain_names import PlainNames

TEXT = st.text("ab\n\r é", max_size=12)
SEVERAL = st.tuples(*[TEXT] * 7)
"""A file's text, and what three edits may be of."""


def with_returns(text: str, mark: str) -> str:
    return mark + text.replace("\n", "\r\n")


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A file's text, and edits most of which are of what is in it."""
    texts, drawn = iter(draw(SEVERAL)), draw(choices(40))
    raw = next(texts)
    if drawn.one_in(2):
        raw = with_returns(raw, drawn.pick(("", "\ufeff")))
    edits: list[Edit] = []
    for new in islice(texts, drawn.pick((1, 2, 3))):
        start = drawn.below(len(raw) + 1)
        old = drawn.pick((raw[start : start + drawn.pick((1, 2, 3, 4))], next(texts)))
        edits.append(Edit(number=1, old=old, new=new, replace_all=drawn.one_in(2)))
    return raw, edits


def expected(text: str, edits: Iterable[Edit], form: TextForm) -> str | None:
    """What the edits make of a text in the plainest way; None where one of them does not fit."""
    for edit in edits:
        old, new = form.plain(edit.old), form.plain(edit.new)
        count = len(re.findall(re.escape(old), text)) if old else 0
        if old == new or count == 0 or (count > 1 and not edit.replace_all):
            return None
        text = text.replace(old, new)
    return text


@settings(max_examples=80, deadline=None)
@given(calls())
def test_edits_apply_exactly_or_change_nothing(given_call: tuple[str, list[Edit]]) -> None:
    text, edits = given_call
    plain, form = taken_apart(text)
    wanted = expected(plain, edits, form)
    raw = text.encode()
    new = raw if wanted is None else form.spelled(wanted).encode()
    patterns = [{"old": edit.old, "new": edit.new, "replace_all": edit.replace_all} for edit in edits]
    with TemporaryDirectory() as name:
        file = Path(name, "file")
        file.write_bytes(raw)

        output = anyio.run(ModifyFile(PlainNames()).run, invocation(Path(name), {"path": "file", "patterns": patterns}))

        assert file.read_bytes() == new
        assert output.is_error == (new == raw)
        assert list(Path(name).iterdir()) == [file]
