"""Edits of a file apply exactly, or leave it as it was."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from file_calls import invocation
from jp.tool.files.modify_file import ModifyFile
from jp.tool.files.text_form import taken_apart
from plain_names import PlainNames

TEXTS = st.text(st.sampled_from("ab\n\r \ufeffé"), max_size=12)
PATTERNS = st.lists(
    st.fixed_dictionaries(
        {"old": st.text("ab\n\r", max_size=3), "new": TEXTS}, optional={"replace_all": st.booleans()}
    ),
    min_size=1,
    max_size=3,
)


def expected(text: str, patterns: list[dict[str, object]]) -> str | None:
    """What the edits make of a text in the plainest way; None where one of them does not fit."""
    for pattern in patterns:
        old, new = str(pattern["old"]), str(pattern["new"])
        count = len(re.findall(re.escape(old), text)) if old else 0
        if old == new or count == 0 or (count > 1 and not pattern.get("replace_all")):
            return None
        text = text.replace(old, new)
    return text


@settings(max_examples=60, deadline=None)
@given(TEXTS.map(lambda text: text.replace("\r\n", "\n")), PATTERNS)
def test_edits_apply_exactly_or_change_nothing(text: str, patterns: list[dict[str, object]]) -> None:
    raw = text.encode()
    _, form = taken_apart(text)
    wanted = expected(text.removeprefix("\ufeff"), patterns)
    new = raw if wanted is None else form.spelled(wanted).encode()
    with TemporaryDirectory() as name:
        file = Path(name, "file")
        file.write_bytes(raw)

        output = anyio.run(ModifyFile(PlainNames()).run, invocation(Path(name), {"path": "file", "patterns": patterns}))

        assert file.read_bytes() == new
        assert output.is_error == (new == raw)
        assert list(Path(name).iterdir()) == [file]
