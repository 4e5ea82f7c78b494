from __future__ import annotations

import os
from urllib.parse import quote, unquote_to_bytes

from hypothesis import given
from hypothesis import strategies as st

from jp.conversation.resource import file_uri


def test_unreserved_characters_and_slashes_stay() -> None:
    assert file_uri("/home/a-b_c.d~e/F9.py") == "file:///home/a-b_c.d~e/F9.py"


def test_every_other_byte_becomes_uppercase_hex() -> None:
    assert file_uri("/a b/ü#1?%.txt") == "file:///a%20b/%C3%BC%231%3F%25.txt"


def test_text_and_its_file_system_bytes_have_one_uri() -> None:
    assert file_uri(os.fsdecode(b"/caf\xe9")) == file_uri(b"/caf\xe9") == "file:///caf%E9"


def test_unicode_forms_of_one_name_stay_apart() -> None:
    assert file_uri("/\u00fc") != file_uri("/u\u0308")


@given(st.binary(min_size=1))
def test_any_path_can_be_read_back_from_its_uri(path: bytes) -> None:
    uri = file_uri(path)

    assert uri == "file://" + quote(path, safe="/~")
    assert unquote_to_bytes(uri.removeprefix("file://")) == path
