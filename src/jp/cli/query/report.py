"""Texts about the cost of a query, and about a dry run."""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.app.models import pricing
from jp.app.query.dry_run import DryRun, Estimate, Exact
from jp.app.query.run import PreparedQuery
from jp.app.query.wiring import Wiring
from jp.app.values import cost_sentence
from jp.cli.options import GlobalOptions
from jp.cli.output import print_result
from jp.conversation.entries import AnyEntry, JsonObject, Usage
from jp.conversation.resource import Resource, size_in_bytes
from jp.conversation.turns import prompt_tokens, usage_by_turn
from jp.render.tables import count_text, money_text
from jp.turn.request import context_in_force
from jp.turn.usage import DetailsOf, Spending, add_spending, by_cycle, of_inquiries, of_summaries, price_of, total_of

if TYPE_CHECKING:
    from jp.app.query.turns import TitleCost
    from jp.turn.ports import Recorder


_MOSTLY_FULL = 0.75


def spent_text(wiring: Wiring, entries: Sequence[AnyEntry], *, start: int, title: TitleCost | None) -> str:
    """Return the cost of the `entries` from `start` on, and of a title; empty if it is zero."""
    details_of = pricing(wiring.config)
    turns = usage_by_turn(entries[start:], context_in_force(entries[:start]))
    requests = [request for turn in turns for request in turn.requests]
    spending = total_of(cycle for _, cycle in by_cycle(requests, details_of))
    inquiries = of_inquiries((answer for turn in turns for answer in turn.inquiries), details_of)
    summaries = of_summaries(entries[start:], details_of)
    spending = total_of((spending, inquiries, summaries))
    if title is not None:
        spending = add_spending(spending, _of_title(title, details_of))
    usage = spending.usage
    if not (prompt_tokens(usage) or usage.output):
        return ""
    cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
    said = f"{prompt_tokens(usage):,} tokens in{cached}, {usage.output:,} out, {cost_sentence(spending)}"
    if title is not None:
        said += f"; of these for the title: {prompt_tokens(title.usage):,} in, {title.usage.output:,} out"
    asked = inquiries.usage
    if asked != Usage():
        said += f"; of these for answers to tools: {prompt_tokens(asked):,} in, {asked.output:,} out"
    told = summaries.usage
    if told != Usage():
        said += f"; of these for summaries: {prompt_tokens(told):,} in, {told.output:,} out"
    return said


_HELPFUL = (("default", "1"), ("heavy", "1"), ("default", "0"), ("heavy", "0"))
"""Profiles and the turns that they keep, the one that loses least first."""

_MUCH_FREED, _LEAST_FREED = 50, 5
"""Percent of a conversation: so much is enough, and less than that is not worth a command."""


def fullness_text(wiring: Wiring, used: int) -> str:
    """Return what to do once `used` tokens fill most of the model's window, else an empty text."""
    from jp.app.models import details_of

    window = details_of(wiring.config, wiring.model).context_window
    if not window or used < window * _MOSTLY_FULL:
        return ""
    return (
        f"the conversation fills {used * 100 // window} % of the window of {str(wiring.model)!r}: "
        "`jp conversation compact --dry-run` shows what can be freed"
    )


def overflow_hint(wiring: Wiring, recorder: Recorder, conversation: str) -> str:
    """Return what helps a request that is too long: the compaction that loses least of those that free most of it."""
    from jp.app.compaction.order import RangeFlags, order_of
    from jp.app.compaction.preview import Previewer

    settings = wiring.config.conversation.compaction
    previewer = Previewer(tuple(recorder.entries), wiring.config, recorder, now=time(), model=wiring.model)
    greatest, words = 0, ""
    for profile, keep in _HELPFUL:
        order = order_of(settings, profile=profile, ranges=RangeFlags(keep_last=keep))
        order = replace(order, summary=replace(order.summary, is_local=True))
        effect = previewer.effect(previewer.plan(order).overlays)
        share = effect.freed * 100 // max(effect.before, 1)
        if share > greatest:
            local = "--local " if profile == "heavy" else ""
            words = f"`jp conversation compact --profile {profile} {local}--keep {keep} {conversation}`"
            greatest = share
        if share >= _MUCH_FREED:
            break
    back = f"`jp conversation undo {conversation}` takes this request back"
    if greatest < _LEAST_FREED:
        return f"no compaction makes it much shorter: {back}, `--model` names one with a larger window"
    return (
        f'{words} frees about {greatest} % of it, then go on with `jp query --id {conversation} "continue"`; or {back}'
    )


def _of_title(title: TitleCost, details_of: DetailsOf) -> Spending:
    price = price_of(title.usage, details_of(title.model.provider, title.model.name))
    return Spending(cycles=1, usage=title.usage, usd=price or 0.0, unpriced=int(price is None))


_LONGEST_SCHEMA = 200


def show_dry_run(options: GlobalOptions, prepared: PreparedQuery, dry: DryRun) -> None:
    """Print the request and its size."""
    request = dry.request
    print_result(
        options,
        text=_text(prepared, dry),
        value={
            "model": dry.model,
            "request": {"path": request.path, "headers": dict(request.headers), "body": request.body},
            "estimate": msgspec.to_builtins(dry.estimate),
            "exact": msgspec.to_builtins(dry.exact),
        },
    )


def _total(estimate: Estimate, count: Exact | None) -> str:
    window = "" if estimate.context_window is None else f" of {estimate.context_window:,}"
    if count is not None:
        return f"{count.tokens:,}{window} tokens, counted by {count.by}{_money(count.usd)}"
    taught = f" (calibrated by {count_text(estimate.answers, 'answer')} of this model)" if estimate.answers else ""
    return f"about {estimate.total:,}{window} tokens{taught}{_money(estimate.usd, 'about ')}"


def _money(usd: float | None, about: str = "") -> str:
    if usd is None:
        return ", price unknown"
    amount = money_text(usd)
    return f", {'' if amount.startswith('<') else about}{amount} for the input" if usd else ", free"


def _text(prepared: PreparedQuery, dry: DryRun) -> str:
    wiring, request, estimate, count = prepared.wiring, prepared.request, dry.estimate, dry.exact
    lines = [
        f"model      {wiring.model}",
        f"tools      {len(wiring.settings.tools)}, about {estimate.tools:,} tokens",
        f"system     {count_text(len(wiring.settings.system), 'part')}, about {estimate.system:,} tokens",
        f"messages   about {estimate.messages:,} tokens",
        f"total      {_total(estimate, count)}",
    ]
    if request.schema is not None:
        lines.append(f"schema     the answer has to fit {_short_json(request.schema)}")
    lines += [f"attached   {_resource(resource)}" for resource in request.resources]
    sent = "nothing was sent or written" if count is None else "nothing was written, or sent but to be counted"
    return "\n".join([*lines, f"{sent}; --format json shows the request"])


def _short_json(schema: JsonObject) -> str:
    text = msgspec.json.encode(schema).decode()
    return text if len(text) <= _LONGEST_SCHEMA else f"{text[: _LONGEST_SCHEMA - 1]}…"


def _resource(resource: Resource) -> str:
    from jp.render.sanitize import one_line

    unchanged = ", unchanged, so sent as a reference" if resource.duplicate_of else ""
    return f"{one_line(resource.name or resource.uri)} ({size_in_bytes(resource):,} bytes{unchanged})"
