"""Secrets in texts of all sorts."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from jp.context.redaction import redact

PIECES = (
    'key="',
    "'",
    '\\"',
    "token: ",
    "Cookie: ",
    "Authorization: Bearer ",
    "password = ",
    "--secret ",
    "?sig=",
    "value: ",
    "name: API_KEY ",
    "://u:",
    "@h ",
    "sk-",
    "eyJ",
    "ghp_",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "[redacted:key]",
    "A1b2C3d4E5f6G7h8I9",
    "[",
    "]",
    ", ",
    ": ",
    "\n",
    "\\n",
    "é",
    " ",
    ".",
    "=",
    "<auth>",
    "</",
)
SECRET = "A1b2C3d4E5f6G7h8I9j0"
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join)
quotable = st.text(st.characters(codec="utf-8"), max_size=20)


@given(texts)
def test_redacting_again_changes_nothing(text: str) -> None:
    once = redact(text)

    again = redact(once.text)

    assert again.text is once.text
    assert (once.text is text) == (not once.found)


@given(texts)
def test_nothing_changes_but_what_markers_stand_for(text: str) -> None:
    pieces = redact(text).text.split("[redacted:")

    position = len(pieces[0])
    assert text.startswith(pieces[0])
    for piece in pieces[1:]:
        kept = piece.partition("]")[2]
        position = text.find(kept, position)
        assert position >= 0
        position += len(kept)


@given(
    st.sampled_from(("password", "API_KEY", "client-secret", "authToken", "x-api-key", "DB_PASSWORD")),
    st.sampled_from(('{{"{}": "{}"}}', '{}="{}"', "{}: '{}'", "{}={}", "--{} {}", "<{}>{}</x>", "{}: {}", "{} = {}")),
    quotable,
    quotable,
)
def test_what_is_assigned_to_a_telling_name_is_gone_whatever_stands_around(
    name: str, form: str, before: str, after: str
) -> None:
    text = f"{before}\n{form.format(name, SECRET)}\n{after}"

    assert SECRET not in redact(text).text
    assert SECRET not in redact(json.dumps(text)).text
    assert SECRET not in redact(json.dumps(json.dumps(text))).text
