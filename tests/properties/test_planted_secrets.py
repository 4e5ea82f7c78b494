"""Secrets of all kinds that people and programs write down, in whatever holds them."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jp.context.redaction import has_no_sign, redact
from jp.context.types import texts_of
from planted import CARRIERS, KINDS, corpus, leaked, plant
from recorded import recorded_transcripts
from transcripts import WORDS

ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "Python": repr,
    "percent": lambda text: quote(text, safe=""),
    "percent, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "address": lambda text: f"https://example.com/?next={quote(text)}&page=2",
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "not ASCII": lambda text: f"ünïcödé {text} 漢字",
}
MOST_IN_RECORDED = 40
"""What is replaced in the recorded sessions, which hold no secret of anybody."""

HARMLESS = (
    "fix 9fceb02d0ae598e95dc970b74767f19372d61af8 and rebase onto it",
    "the token 3fa85f64-5717-4562-b3fc-2c963f66afa6.py is a file",
    '"integrity": "sha512-abcDEF0123456789abcDEF0123456789abcDEF0123456789abcDEF0123456789=="',
    "url = https://example.com/packages/ab/cd/ef0123456789/wheel-1.2.3-py3-none-any.whl",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "the password is base64-encoded",
    "a password must have 8 characters",
    "password authentication with oauth2",
    "the token is sha256 of the body",
    "pass test_foo_2024 and test_bar_17",
    "mkdir -p build/release2 && mysql -p main",
    "curl -u $USER:$PASS https://example.com -b cookies.txt",
    "docker run -u 1000:1000 -p 8080:80 image",
    "the key src/jp/context2/redaction.py:17 is a path",
    'const TrailerKey = "Entire-Metadata"',
    '{"tokens": {"input": 12, "output": 7, "model": "claude-haiku"}}',
    "export OPENAI_API_KEY=sk-...",
    "100%20of%20it",
    "the session abc123def456ghi789 is old",
    "keys: {a1b2c3d4e5f6: 1}",
    '{"tokens": {"created": "2026-11-02T10:00:00Z"}}',
    '{"tokens": {"id": "79b891f0-6e3d-482c-ba5d-b9138744f17e"}}',
    "secret:\n  plain words\n",
    "secret:\n  configuration\n",
    "http-server-with-a-long-name listens",
)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_nothing_is_left_of_any_secret_in_any_carrier_however_it_is_encoded(encoding: str) -> None:
    planted = list(corpus())

    left = {
        (each.kind, each.carrier): found
        for each in planted
        if (found := leaked(each.secret, redact(ENCODINGS[encoding](each.text)).text))
    }

    assert (len(planted) >= 250, len(KINDS) >= 40, left) == (True, True, {})


@given(st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(CARRIERS)), st.sampled_from(sorted(ENCODINGS)), st.data())
def test_nothing_is_left_of_a_secret_whatever_it_is_and_whatever_stands_around(
    kind: str, carrier: str, encoding: str, data: st.DataObject
) -> None:
    each = plant(kind, carrier, data.draw(st.integers(0, 2**32)))
    before, after = data.draw(st.sampled_from(WORDS)), data.draw(st.sampled_from(WORDS))

    text = ENCODINGS[encoding](f"{before}\n{each.text}\n{after}")

    assert leaked(each.secret, redact(text).text) == ""
    assert redact(redact(text).text).found == ()


@given(st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(CARRIERS)), st.integers(0, 2**32))
def test_a_text_that_shows_no_sign_of_a_secret_has_none(kind: str, carrier: str, seed: int) -> None:
    each = plant(kind, carrier, seed)

    assert not has_no_sign(each.text)


@given(
    st.lists(st.sampled_from((*WORDS, *HARMLESS, "xoxb-", "A1b2C3d4E5f6", ":", "=", " ", "\n")) | st.text(max_size=9))
)
def test_what_shows_no_sign_is_what_would_be_left_alone(pieces: list[str]) -> None:
    text = "".join(pieces)
    redact("the finder is loaded now: token=A1b2C3d4E5f6G7h8")

    if has_no_sign(text):
        assert redact(text).found == ()


@pytest.mark.parametrize("text", HARMLESS)
def test_hashes_paths_pictures_and_words_stay(text: str) -> None:
    assert redact(text).found == ()


def test_hardly_anything_is_replaced_in_recorded_sessions() -> None:
    found = [
        kind
        for _, messages in recorded_transcripts()
        for message in messages
        for text in (*texts_of(message), *(call.arguments for call in message.calls))
        for kind in redact(text).found
    ]

    assert len(found) <= MOST_IN_RECORDED, found
