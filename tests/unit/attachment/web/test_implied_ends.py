from __future__ import annotations

import pytest

from jp.attachment.web.page import ended_by


@pytest.mark.parametrize(
    ("name", "around", "ended"),
    [
        ("li", "li ul body", "li"),
        ("li", "b li ul", "li"),
        ("li", "ul li ol", None),
        ("dd", "dt dl", "dt"),
        ("dt", "dd dl", "dd"),
        ("tr", "td tr table", "tr"),
        ("td", "th tr table", "th"),
        ("td", "tr table", None),
        ("tr", "table td tr table", None),
        ("tbody", "td tr thead table", "thead"),
        ("p", "p body", "p"),
        ("p", "i p body", "p"),
        ("div", "p body", "p"),
        ("p", "div p body", None),
        ("span", "p body", None),
        ("p", "", None),
        ("p", "span " * 30 + "p", None),
    ],
)
def test_which_element_the_start_of_another_ends(name: str, around: str, ended: str | None) -> None:
    assert ended_by(name, around.split()) == ended
