from __future__ import annotations

import pytest

from jp.mcp.definitions import LONGEST, canonical_uri, split_uri


@pytest.mark.parametrize(
    ("server", "uri", "known_as"),
    [
        ("notes", "memo://today", "mcp+notes+memo://today"),
        ("my_notes", "file:///a%20b#L1", "mcp+my_notes+file:///a%20b#L1"),
        ("s", "a b\n", "mcp+s+a%20b%0A"),
        ("s", "é+ü", "mcp+s+é+ü"),
        ("s", "x\ud800", "mcp+s+x%3F"),
    ],
)
def test_a_uri_of_a_server_is_kept_but_for_what_no_uri_holds(server: str, uri: str, known_as: str) -> None:
    assert canonical_uri(server, uri) == known_as
    assert split_uri(known_as) == (server, known_as.split("+", 2)[2])
    assert canonical_uri(*(split_uri(known_as) or ("", ""))) == known_as


def test_a_uri_has_an_end() -> None:
    assert len(canonical_uri("s", "x" * 100_000)) == LONGEST + len("mcp+s+")


@pytest.mark.parametrize("uri", ["mcp", "mcp+s", "mcp+s+", "mcp++x", "mcp+a/b+x", "memo://x", "mcp+s+ x"])
def test_what_names_no_server_or_nothing_on_it_is_no_such_uri(uri: str) -> None:
    assert split_uri(uri) is None
