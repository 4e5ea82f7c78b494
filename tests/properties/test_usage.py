"""What a stream took, over streams as writers leave them, and over those that hands and accidents have changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from choices import Choices, choices
from jp.app.reports import usage_report_of
from jp.cli.conversation.usage import report_parts, report_value
from jp.compaction.overlays import forked_stream
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry, CycleEnd, Digests, Usage
from jp.conversation.forking import TurnRange
from jp.conversation.turns import TurnUsage, turns_of, usage_by_turn
from jp.provider.base import ModelDetails, Part, TextDelta, UsageReport
from jp.render.tables import plain_text
from jp.turn.cost_cap import Meter, least_cost, prices_of
from jp.turn.usage import price_of, total_of
from streams import any_streams

CONFIG = AppConfig()
TOKENS = st.integers(0, 10**7)
USAGES = st.builds(Usage, input=TOKENS, output=TOKENS, cache_read=TOKENS, cache_write=TOKENS, reasoning=TOKENS)
PRICES = st.floats(0, 1000)
DETAILS = st.builds(
    ModelDetails,
    provider=st.just("p"),
    id=st.just("m"),
    input_price=PRICES,
    output_price=PRICES,
    cache_read_price=PRICES,
    cache_write_price=PRICES,
    cache_write_long_price=PRICES,
    long_prompt=st.none() | TOKENS,
    long_prompt_factor=st.floats(1, 10),
)


def usage_of(drawn: Choices) -> Usage:
    """Of few tokens and of millions; of none where it was not told."""
    amounts = [drawn.below(256) ** 3 for _ in range(5)]
    told = Usage(
        input=amounts[0], output=amounts[1], cache_read=amounts[2], cache_write=amounts[3], reasoning=amounts[4]
    )
    return drawn.pick((Usage(), told))


def spent(entries: Sequence[AnyEntry], drawn: Choices) -> tuple[AnyEntry, ...]:
    """A stream whose requests took something, with digests of any kind."""
    return tuple(
        replace(
            entry,
            usage=usage_of(drawn),
            digests=Digests(system=drawn.pick(("", "s")), kept=drawn.below(4), messages=drawn.pick(((), ("a", "b")))),
        )
        if isinstance(entry, CycleEnd)
        else entry
        for entry in entries
    )


spent_streams = st.builds(spent, any_streams(), choices(200))


@given(spent_streams)
def test_the_turns_the_cycles_and_the_models_add_up_to_the_total(entries: Sequence[AnyEntry]) -> None:
    report = usage_report_of(entries, CONFIG)
    ends = [entry for entry in entries if isinstance(entry, CycleEnd)]

    assert total_of(turn.spending for turn in report.turns) == report.total
    cycles = [cycle for turn in report.turns for cycle in turn.cycles]
    assert total_of(cycle.spending for cycle in cycles).usage == report.total.usage
    models = total_of(report.models.values())
    assert replace(models, usd=0.0) == replace(report.total, usd=0.0)
    assert models.usd == pytest.approx(report.total.usd)
    assert report.total.usage.input == sum(end.usage.input for end in ends)
    assert report.total.untold <= report.total.cycles
    assert report.total.unpriced <= report.total.cycles
    assert len(report.turns) == len(turns_of(entries))


@given(entries=spent_streams, width=st.sampled_from((None, 80, 200)), by_cycle=st.booleans())
def test_every_report_can_be_shown(entries: Sequence[AnyEntry], width: int | None, *, by_cycle: bool) -> None:
    report = usage_report_of(entries, CONFIG)
    table = plain_text(report_parts(report, by_cycle=by_cycle), width=width).partition("\n\n")[0]

    assert width is None or all(len(line) <= width for line in table.splitlines())
    assert report_value(report)["total"]["cycles"] == report.total.cycles


@given(spent_streams.filter(lambda entries: bool(turns_of(entries))), st.data())
def test_a_fork_took_what_its_turns_took(entries: Sequence[AnyEntry], data: st.DataObject) -> None:
    last = data.draw(st.integers(0, len(turns_of(entries)) - 1))
    first = data.draw(st.integers(0, last))

    forked = usage_by_turn(forked_stream(entries, TurnRange(first=first, last=last)).entries)

    assert taken(forked) == taken(usage_by_turn(entries)[first : last + 1])


def taken(turns: Sequence[TurnUsage]) -> list[list[Usage | None]]:
    """What each turn took that took anything: where a log was changed by hand, a fork may join what took nothing."""
    usages = [[request.usage for request in turn.requests if request.usage not in {None, Usage()}] for turn in turns]
    return [usage for usage in usages if usage]


@given(USAGES, USAGES, DETAILS, st.sampled_from(("off", "short", "long")))
def test_more_tokens_never_cost_less(one: Usage, more: Usage, details: ModelDetails, cache: str) -> None:
    both = Usage(
        input=one.input + more.input,
        output=one.output + more.output,
        cache_read=one.cache_read + more.cache_read,
        cache_write=one.cache_write + more.cache_write,
    )
    less, all_of_it = price_of(one, details, cache=cache), price_of(both, details, cache=cache)

    assert less is not None
    assert all_of_it is not None
    assert 0 <= less <= all_of_it * (1 + 1e-9) + 1e-12


@given(TOKENS, TOKENS, DETAILS)
def test_the_least_that_a_prompt_costs_is_no_more_than_it_costs(
    tokens: int, cached: int, details: ModelDetails
) -> None:
    prices = prices_of(details, cache="short")

    assert prices is not None
    least = least_cost(tokens, prices, cached=cached)
    for read in {0, min(cached, tokens), min(cached, tokens) // 2}:
        whole = prices.usd(Usage(input=tokens - read, cache_read=read))
        assert least <= whole * (1 + 1e-9) + 1e-12


@given(st.lists(st.text(max_size=20).map(lambda text: TextDelta(0, text))), USAGES)
def test_what_a_request_has_cost_grows_until_the_provider_says_better(parts: list[Part], usage: Usage) -> None:
    meter, outputs = Meter(prompt=5), [0]
    for part in parts:
        meter = meter.after(part)
        outputs.append(meter.tokens().output)

    assert outputs == sorted(outputs)
    assert meter.after(UsageReport(usage)).tokens() == usage
