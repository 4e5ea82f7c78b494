from __future__ import annotations

import pytest

from jp.conversation.entries import Compaction, CycleEnd, InquiryResponse, RequestContext, SummaryPolicy, Usage
from jp.conversation.turns import RequestUsage
from jp.provider.base import ModelDetails
from jp.turn.usage import Spending, add_spending, by_cycle, is_free, of_inquiries, of_summaries, price_of, total_of

PRICED = ModelDetails(
    provider="p",
    id="priced",
    input_price=1.0,
    output_price=10.0,
    cache_read_price=0.1,
    cache_write_price=1.25,
    cache_write_long_price=2.0,
    long_prompt=1000,
    long_prompt_factor=5.0,
)
FREE = ModelDetails(provider="p", id="free", input_price=0.0, output_price=0.0)
UNKNOWN = ModelDetails(provider="p", id="unknown")


def details_of(provider: str, name: str) -> ModelDetails:
    return {"priced": PRICED, "free": FREE}.get(name, UNKNOWN)


def request(cycle: int, usage: Usage, *, model: str = "priced", cache: str = "short", attempt: int = 1) -> RequestUsage:
    context = RequestContext(provider="p", model=model, renderer=1, parameters={"cache": cache})
    end = CycleEnd(attempt=attempt, finish="stop", usage=usage)
    return RequestUsage(turn=0, cycle=cycle, end=end, context=context, answered=True)


@pytest.mark.parametrize(
    ("usage", "details", "cache", "price"),
    [
        (Usage(input=100, output=10), PRICED, "short", 0.0002),
        (Usage(cache_write=100), PRICED, "short", 0.000125),
        (Usage(cache_write=100), PRICED, "long", 0.0002),
        (Usage(cache_write=100), PRICED, "off", 0.000125),
        (Usage(input=1001), PRICED, "short", 0.005005),
        (Usage(input=100), UNKNOWN, "short", None),
        (None, PRICED, "short", None),
        (None, FREE, "short", 0.0),
    ],
)
def test_a_request_has_its_price(usage: Usage | None, details: ModelDetails, cache: str, price: float | None) -> None:
    assert price_of(usage, details, cache=cache) == (price if price is None else pytest.approx(price))


def test_each_request_is_priced_by_itself() -> None:
    cycles = by_cycle([request(0, Usage(input=800)), request(1, Usage(input=800))], details_of)

    assert total_of(spending for _, spending in cycles).usd == pytest.approx(0.0016)  # no prompt is a long one


def test_a_cycle_has_all_its_attempts() -> None:
    first = request(0, Usage(input=10, output=1))
    ((last, spending),) = by_cycle([first, request(0, Usage(input=20, output=2), attempt=2)], details_of)

    assert last.end is not None
    assert last.end.attempt == 2
    assert (spending.cycles, spending.usage) == (1, Usage(input=30, output=3))
    assert spending.usd == pytest.approx(0.00006)


def test_what_is_not_known_is_counted_and_never_nothing() -> None:
    cycles = by_cycle(
        [request(0, Usage(input=10)), request(1, Usage(input=10), model="unknown"), request(2, Usage())], details_of
    )
    total = total_of(spending for _, spending in cycles)

    assert (total.cycles, total.untold, total.unpriced) == (3, 1, 2)
    assert total.usd == pytest.approx(0.00001)
    assert total.known_usd is None
    assert total_of([]).known_usd == 0


def test_two_sums_are_one() -> None:
    one = Spending(cycles=1, usage=Usage(input=1), usd=0.5, untold=1, unpriced=1)

    assert add_spending(one, one) == Spending(cycles=2, usage=Usage(input=2), usd=1.0, untold=2, unpriced=2)


def test_a_model_is_free_only_where_that_is_known() -> None:
    assert [is_free(details) for details in (FREE, PRICED, UNKNOWN)] == [True, False, False]


def test_a_models_answers_to_tools_are_priced_and_are_no_cycles() -> None:
    def answer(model: str, usage: Usage | None) -> InquiryResponse:
        return InquiryResponse(request="q", answer=1, answered_by="assistant", model=model, usage=usage)

    found = of_inquiries(
        [
            answer("p/priced", Usage(input=100, output=10)),
            answer("p/unknown", Usage(input=5)),
            answer("p/priced", None),
        ],
        details_of,
    )

    assert (found.usage, found.cycles, found.untold, found.unpriced) == (Usage(input=105, output=10), 0, 0, 0)
    assert found.usd == pytest.approx(0.0002)


def test_summaries_are_counted_beside_the_cycles() -> None:
    def compaction(summary: SummaryPolicy | None) -> Compaction:
        return Compaction(from_turn=0, to_turn=0, summary=summary)

    found = of_summaries(
        [
            compaction(SummaryPolicy(text="a", model="p/priced", usage=Usage(input=100, output=10))),
            compaction(SummaryPolicy(text="b")),
            compaction(None),
        ],
        details_of,
    )

    assert (found.usage, found.cycles) == (Usage(input=100, output=10), 0)
    assert found.usd == pytest.approx(0.0002)
