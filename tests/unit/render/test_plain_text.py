from __future__ import annotations

from jp.render.sanitize import PlainText


def test_text_is_shown_at_once_and_without_what_steers_a_terminal() -> None:
    text = PlainText()

    assert text.feed("one\x1b[2Jtwo\x1b[") == "onetwo"
    assert (text.preview(), text.settle()) == ("", "")
    assert text.feed("3Jthree") + text.finish() == "three"
