from __future__ import annotations

import pytest

from jp.attachment.registry import tokens_of
from jp.conversation.resource import Resource

TWO_PAGES = b"/Type /Page /Type/Page\n/Type /Pages"


@pytest.mark.parametrize(
    ("resource", "tokens"),
    [
        (Resource(uri="x", text="a" * 400), 100),
        (Resource(uri="x", sha256="0", size=400, chars=400, lines=1), 100),
        (Resource(uri="x", mime_type="image/png", blob=b"a" * 50), 1_600),
        (Resource(uri="x", mime_type="image/png", sha256="0", size=50), 1_600),
        (Resource(uri="x", mime_type="application/pdf", blob=TWO_PAGES), 4_500),
        (Resource(uri="x", mime_type="application/pdf", blob=b"%PDF"), 2_250),
        (Resource(uri="x", mime_type="application/pdf", sha256="0", size=100_000), 4_500),
        (Resource(uri="x"), 0),
    ],
)
def test_a_resource_weighs_what_it_is_sent_as(resource: Resource, tokens: int) -> None:
    assert tokens_of([resource]) == tokens


def test_resources_are_added_up() -> None:
    assert tokens_of(Resource(uri=str(n), text="a" * 40) for n in range(3)) == 30


def test_nothing_weighs_nothing() -> None:
    assert tokens_of([]) == 0
