from __future__ import annotations

import pytest

from jp.attachment.web import page
from jp.attachment.web.page import HEAVIEST, is_heavy


@pytest.mark.parametrize(
    "html",
    [
        "<p>" * 100_000,
        "<p>x</p>" * 1_000_000,
        "x" * 20_000_001,
        "<a " + " b" * 400_000,
        "<a" + "/b" * 400_000,
        "<a " * 10_000,
        "<a " + "\n" * 45_000,
        ("<a " + "\n" * 5_000 + ">") * 100,
    ],
)
def test_what_is_too_much_for_a_tree(html: str) -> None:
    assert is_heavy(html)


@pytest.mark.parametrize(
    "html",
    [
        "",
        "x" * 10_000_000,
        "<img src='data:image/png;base64," + "A" * 1_000_000 + "'>",
        "<path d='" + "M 0 1 " * 10_000 + "'>",
        "<script>" + "if (a < b) {}; " * 1_000 + "</script>",
        "<p>a" + "\n" * 1_000_000,
    ],
)
def test_what_is_not(html: str) -> None:
    assert not is_heavy(html)


def test_many_paragraphs_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "HEAVIEST", HEAVIEST // 10)

    assert not is_heavy("<p class=a>text</p>\n" * 4_500)
