from __future__ import annotations

import pytest

from jp.attachment.weight import Weight, weigh
from jp.conversation.resource import Resource

TWO_PAGES = b"/Type /Page /Type/Page\n/Type /Pages"


@pytest.mark.parametrize(
    ("resource", "weight"),
    [
        (Resource(uri="x", text="a" * 400), Weight(size=400, tokens=100)),
        (Resource(uri="x", sha256="0", size=400, chars=400, lines=1), Weight(size=400, tokens=100)),
        (Resource(uri="x", mime_type="image/png", blob=b"a" * 50), Weight(size=50, tokens=1_600)),
        (Resource(uri="x", mime_type="image/png", sha256="0", size=50), Weight(size=50, tokens=1_600)),
        (Resource(uri="x", mime_type="application/pdf", blob=TWO_PAGES), Weight(size=35, tokens=4_500)),
        (Resource(uri="x", mime_type="application/pdf", blob=b"%PDF"), Weight(size=4, tokens=2_250)),
        (Resource(uri="x", mime_type="application/pdf", sha256="0", size=100_000), Weight(size=100_000, tokens=4_500)),
        (Resource(uri="x"), Weight(size=0, tokens=0)),
    ],
)
def test_a_resource_weighs_what_it_is_sent_as(resource: Resource, weight: Weight) -> None:
    assert weigh([resource]) == weight


def test_resources_are_added_up() -> None:
    assert weigh(Resource(uri=str(n), text="a" * 40) for n in range(3)) == Weight(size=120, tokens=30)


def test_nothing_weighs_nothing() -> None:
    assert weigh([]) == Weight(size=0, tokens=0)
