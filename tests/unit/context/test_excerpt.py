from __future__ import annotations

import transcripts
from jp.context.markers import marked_handles, shortest_limit
from jp.context.redaction import cut_plainly, excerpt, without_secrets
from summaries import NONCE, cutter


def test_an_excerpt_is_exact_where_it_fits_and_else_its_marker_recalls_the_original() -> None:
    store = cutter()
    original = f"{transcripts.SECRET} " + "word " * 100

    assert excerpt("short", 5, store) == "short"
    found = excerpt(original, 200, store)

    assert len(found) <= 200
    assert found.startswith("[redacted:")
    assert found.endswith("word word ")
    assert [store.artifacts.recall(handle) for handle in marked_handles(found, NONCE)] == [original]


def test_an_excerpt_is_as_long_as_a_marker_at_least() -> None:
    store = cutter()
    least = shortest_limit(NONCE)

    assert excerpt("x" * least, 3, store) == "x" * least
    assert len(excerpt("x" * 500, 3, store)) <= least


def test_halves_of_surrogate_pairs_do_not_come_along() -> None:
    assert without_secrets("a\ud800b ü") == "a?b ü"
    assert without_secrets("ab ü") == "ab ü"


def test_a_plain_cut_says_how_much_is_missing() -> None:
    assert cut_plainly("abcdefghij", 10) == "abcdefghij"
    assert cut_plainly("abcdefghij", 4) == "abc [6 characters omitted] j"
