from __future__ import annotations

import pytest

from jp.app.values import cost_sentence, cost_text
from jp.conversation.entries import Usage
from jp.turn.usage import Spending

SOME = Usage(input=10, output=1)


@pytest.mark.parametrize(
    ("spending", "text", "sentence"),
    [
        (Spending(), "$0", "$0"),
        (Spending(cycles=1), "$0", "$0"),
        (Spending(cycles=1, usage=SOME), "free", "free"),
        (Spending(cycles=1, untold=1), "free", "free"),
        (Spending(cycles=1, usage=SOME, usd=0.0123), "$0.0123", "$0.0123"),
        (Spending(cycles=2, usage=SOME, unpriced=2), "unknown", "cost unknown"),
        (
            Spending(cycles=5, usage=SOME, usd=0.12, unpriced=2),
            "at least $0.1200",
            "at least $0.1200; what 2 of 5 cycles cost is unknown",
        ),
        (Spending(cycles=5, usage=SOME, unpriced=2), "unknown", "unknown; what 2 of 5 cycles cost is unknown"),
        (
            Spending(cycles=2, usage=SOME, usd=0.00001, unpriced=1),
            "unknown",
            "unknown; what 1 of 2 cycles cost is unknown",
        ),
        (Spending(cycles=1, usage=SOME, usd=0.12, unpriced=1), "at least $0.1200", "at least $0.1200"),
    ],
)
def test_what_is_not_known_is_never_nothing(spending: Spending, text: str, sentence: str) -> None:
    assert (cost_text(spending), cost_sentence(spending)) == (text, sentence)
