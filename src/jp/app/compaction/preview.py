"""A preview of a compaction, or of each profile: effect and cost. Nothing is written, and no model is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import asdict

from jp.app.compaction.order import CompactionOrder, order_of
from jp.app.compaction.summarizer import (
    LARGE_WINDOW,
    SHORTEST_ACCOUNT,
    limit_of,
    local_summary,
    rehearsal_terms,
    rehearse,
    summary_model,
    texts_of,
    window_of,
)
from jp.app.estimates import known_error
from jp.app.models import details_of
from jp.compaction.budgeting import Budgeting
from jp.compaction.fact_lines import StatusLineFormatter
from jp.compaction.overlays import Range
from jp.compaction.planning import Effect, Plan, Planner, ResultObserver, with_unwritten_summary
from jp.compaction.projection import project
from jp.compaction.status_lines import StatusFormatter
from jp.compaction.transcript import transcript_of
from jp.config.model import AppConfig, profiles_of
from jp.context.breakdown import Calibration, Part, calibrate
from jp.context.budget import EditCost, Prices, PromptEdit, cost_of_edit, estimate_messages
from jp.context.estimate import estimate_tokens
from jp.context.summary_asking import answer_budget, summary_limit
from jp.context.types import Transcript
from jp.conversation.entries import (
    AnyEntry,
    ChatRequest,
    ChatResponse,
    Compaction,
    CycleEnd,
    TurnStart,
)
from jp.conversation.thread import ToolDefinition
from jp.conversation.turns import prompt_tokens, reported_usage, usage_by_turn
from jp.errors import ConfigurationError, JpError
from jp.provider.base import ModelDetails
from jp.provider.models import cache_facts
from jp.provider.registry import ModelId, create_adapter, kind_of
from jp.turn.bound_reasoning import render_bound
from jp.turn.request import Loader, RequestSettings, build_thread, canonical_json, context_in_force, is_same_context
from jp.turn.sent import sent_requests, settings_of


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of a request, with those that are 0."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int


class LastCycle(msgspec.Struct, frozen=True, kw_only=True):
    """The last request whose tokens the provider reported, and what is estimated of the same.

    `added` is the estimate of later content; None if the context no longer contains what was sent then.
    """

    turn: int
    cycle: int
    model: str
    usage: Tokens
    reported: int
    estimated: int
    ratio: float
    added: int | None


def last_cycle(
    entries: Sequence[AnyEntry], messages: Transcript, loader: Loader, status_formatter: StatusFormatter
) -> LastCycle | None:
    """Return the last request of a stream that was measured; `messages` are those of its view."""
    reported = reported_usage(entries)
    for sent in reversed(sent_requests(entries)):
        usage = reported.get((sent.turn, sent.cycle, sent.attempt))
        if usage is not None and prompt_tokens(usage):
            then = entries[: sent.entries]
            before = transcript_of(project(then, status_formatter, continuing=sent.going_on), then).messages
            beside = sum(part.tokens for part in parts_of(settings_of(sent.context, loader)))
            current = context_in_force(entries)
            stands = current is not None and is_same_context(sent.context, current)
            reported_tokens, estimated = prompt_tokens(usage), beside + estimate_messages(before)
            return LastCycle(
                turn=sent.turn,
                cycle=sent.cycle,
                model=model_name(sent.context.provider, sent.context.model),
                usage=Tokens(**asdict(usage)),
                reported=reported_tokens,
                estimated=estimated,
                ratio=reported_tokens / max(estimated, 1),
                added=_added(before, messages) if stands else None,
            )
    return None


def _added(before: Transcript, now: Transcript) -> int | None:
    """Return the messages since the last request, None if the view no longer begins with what was sent."""
    return estimate_messages(now[len(before) :]) if now[: len(before)] == before else None


def parts_of(
    settings: RequestSettings, configured: str = "", on_servers: Collection[str] = frozenset()
) -> Iterator[Part]:
    """Yield the parts of a request beside its messages. Of the system prompt, sections and instructions are rules."""
    prompt = configured if configured in settings.system else "".join(settings.system[:1])
    for text in settings.system:
        bucket = "system_prompt" if text == prompt else "rules"
        yield Part(bucket=bucket, tokens=estimate_tokens(text), size=len(text.encode()))
    for tool in settings.tools:
        bucket = "mcp_tools" if tool.name in on_servers else "tool_definitions"
        yield Part(bucket=bucket, tokens=_tool_tokens(tool), size=len(canonical_json(tool).encode()))


def _tool_tokens(tool: ToolDefinition) -> int:
    return estimate_tokens(canonical_json(tool))


def model_name(provider: str, name: str) -> str:
    """Return a model with its provider."""
    return f"{provider}/{name}" if provider else "not known"


_LEAST_SUMMARY = 140
"""About how many tokens a summary takes that says next to nothing."""

_WRITTEN_PERCENT = 15
"""The length of the part that a model writes, in percent of what it reads: of a small range it may take far more, and
does not."""

_MILLION = 1_000_000


class SummaryPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The size and the cost of a summary, and the size of what it replaces.

    The view has `replaced` tokens for its turns now, and will have `expected`, never more than `at_most`; `before` are
    those of the turns before it, which stay as they are. `input` are those that `model` reads, in `calls` requests.
    `usd` is None where the price is not known.
    """

    turns: Range
    model: str
    before: int
    replaced: int
    expected: int
    at_most: int
    input: int
    calls: int
    usd: float | None


class LostReasoning(msgspec.Struct, frozen=True, kw_only=True):
    """Reasoning that is sent now and would not be, because its vendor takes it only behind an unchanged prefix.

    `tokens` are those that the model took for it, as far as its vendor reported them, else about those of its text.
    """

    blocks: int = 0
    tokens: int = 0


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of a compaction, in tokens as the model counts them as far as that is known.

    `cost` is what the edit costs in the cache of the provider, None where prices are not known; `is_warm` says that
    the cache still holds what was sent last. `budget` are the tokens that the view may have.
    """

    model: str
    turns: int
    profile: str
    overlays: tuple[Compaction, ...]
    effect: Effect
    summary: SummaryPreview | None
    cost: EditCost | None
    is_warm: bool
    budget: int | None = None
    reasoning_lost: LostReasoning = LostReasoning()

    @property
    def changed_from(self) -> int | None:
        """The turn from which on the provider reads again what it had in its cache."""
        told = None if self.summary is None else self.summary.turns.first
        return min((turn for turn in (self.effect.changed_from, told) if turn is not None), default=None)

    @property
    def frees(self) -> bool:
        """True if the view would be smaller."""
        return bool(self.overlays) or self.summary is not None


def conversation_model(entries: Sequence[AnyEntry], config: AppConfig) -> ModelId:
    """Return the model that answered last, else the configured one; one without a name where none is known."""
    from jp.provider.registry import parse_model_id

    context = context_in_force(entries)
    if context is not None:
        return ModelId(context.provider, context.model)
    name = config.assistant.model.id
    try:
        return ModelId("", "") if name is None else parse_model_id(name, config.providers.llm)
    except ConfigurationError:
        # Hiding needs no model, whatever a conversation from elsewhere calls its own.
        return ModelId("", "")


class Previewer:
    """Plans for one conversation, and tells what would come of it.

    `loader` gives the content of the stream `entries`. `now` is in seconds since 1970. `model` is who answers next,
    where that is known.
    """

    def __init__(
        self,
        entries: Sequence[AnyEntry],
        config: AppConfig,
        loader: Loader,
        *,
        now: float,
        model: ModelId | None = None,
    ) -> None:
        self.entries = entries
        self.config = config
        self.loader = loader
        self._now = now
        self.model = model or conversation_model(entries, config)
        self.planner = Planner(
            entries,
            StatusLineFormatter(),
            config.conversation.tools,
            now=now,
            observer=ResultObserver(texts_of(loader)),
        )
        self._ratio = self._measured_ratio()
        self._chooser: tuple[CompactionOrder, Budgeting] | None = None

    def plan(self, order: CompactionOrder) -> Plan:
        """Return what `order` comes to, without a summary where none could be shorter.

        A local summary is written here: it is an overlay like the mechanical ones.
        """
        plan = self._planned(order)
        if plan.summary is None:
            return plan
        if self._gains_from(plan.summary):
            found = self._with_local_summary(order, plan, plan.summary) if order.summary.is_local else plan
            if found is not None:
                return found
        return self._planned(order, with_summary=False)

    def _planned(self, order: CompactionOrder, *, with_summary: bool = True) -> Plan:
        if order.budget is not None:
            return self._budgeting(order).plan(with_summary=with_summary)
        wish = order.wish if with_summary else msgspec.structs.replace(order.wish, summary=False)
        return self.planner.plan(wish, order.bounds)

    def _budgeting(self, order: CompactionOrder) -> Budgeting:
        """Return what chooses for `order`, which estimates the view only once."""
        if self._chooser is None or self._chooser[0] != order:
            room = int((self.budget_of(order) or 0) / self._ratio)
            chooser = Budgeting(self.planner, order.wish, order.bounds, room, is_firm=order.is_firm)
            self._chooser = (order, chooser)
        return self._chooser[1]

    def _measured_ratio(self) -> float:
        """Return the tokens for one estimated: as the conversation's last request was measured, else by the model."""
        name = str(self.model)
        last = last_cycle(self.entries, self.planner.view().messages, self.loader, StatusLineFormatter())
        learned = Calibration()
        if last is not None and last.model == name:
            learned = calibrate(learned, name, estimated=last.estimated, reported=last.reported)
        return learned.ratios.get(name) or known_error(name).ratio

    def settled(self, order: CompactionOrder, plan: Plan, summary: Compaction) -> tuple[Compaction, ...]:
        """Return the overlays of `plan` with its summary, which is written; what it leaves of a budget is spent."""
        if order.budget is None:
            return (*plan.overlays, summary)
        return self._budgeting(order).settle(summary)

    def summary_limit(self, order: CompactionOrder, turns: Range) -> int:
        """Return the tokens that a summary of `turns` may have: what the budget of `order` leaves to it, too."""
        limit = limit_of(self.config, self.model)
        if order.budget is None:
            return limit
        return min(limit, self._budgeting(order).summary_room(turns))

    def budget_of(self, order: CompactionOrder) -> int | None:
        """Return the tokens that `order` allows the view, None where it names none."""
        return None if order.budget is None else order.budget.of(round(self.planner.tokens * self._ratio))

    def _with_local_summary(self, order: CompactionOrder, plan: Plan, turns: Range) -> Plan | None:
        """Return `plan` with its summary made of the log, or None where it would be no shorter than its turns."""
        limit = self.summary_limit(order, turns)
        policy = local_summary(self.entries, turns, self.loader, limit=limit)
        if policy is None:
            return None
        summary = msgspec.structs.replace(self.planner.bare(turns), summary=policy)
        if order.budget is not None:
            is_shorter = estimate_tokens(policy.text) < self._budgeting(order).replaced(turns)
        else:
            is_shorter = self.planner.size((*plan.overlays, summary)) < self.planner.size(plan.overlays)
        return Plan(overlays=self.settled(order, plan, summary)) if is_shorter else None

    def preview(self, order: CompactionOrder, plan: Plan) -> Preview:
        """Return the effects of `plan`."""
        effect = self.effect(plan.overlays)
        details = details_of(self.config, self.model)
        is_warm = self._is_warm()
        summary, overlays = None, plan.overlays
        if plan.summary is not None:
            summary = self._summary(plan.summary, order, self.summary_limit(order, plan.summary))
            overlays = (*overlays, with_unwritten_summary(self.planner.bare(plan.summary)))
        return Preview(
            model=str(self.model) if self.model.name else "",
            turns=len(self.planner.shape.turns),
            profile=order.name,
            overlays=plan.overlays,
            effect=effect,
            summary=summary,
            cost=_cost(effect, summary, details, is_warm=is_warm),
            is_warm=is_warm,
            budget=self.budget_of(order),
            reasoning_lost=reasoning_lost(self.entries, overlays, self.config, self.loader),
        )

    def _gains_from(self, turns: Range) -> bool:
        """Return whether a summary of these turns may be shorter than what the view has for them now."""
        tokens = self._tokens_of(turns)
        is_summarized = self.planner.is_summarized(turns) and tokens <= limit_of(self.config, self.model)
        return tokens > _LEAST_SUMMARY and not is_summarized

    def _tokens_of(self, turns: Range) -> int:
        return sum(turn.tokens for turn in self.planner.shape.turns if turns.first <= turn.number <= turns.last)

    def effect(self, overlays: Sequence[Compaction]) -> Effect:
        """Return the size of the stream with `overlays` at its end, in tokens as the model counts them."""
        return _scaled(self.planner.effect(overlays), self._ratio)

    def _summary(self, turns: Range, order: CompactionOrder, limit: int) -> SummaryPreview:
        model = summary_model(self.config, order.summary, self.model)
        window = window_of(self.config, model)
        replaced = self._tokens_of(turns)
        # A summary that is no shorter than its turns is not used.
        at_most = min(limit, replaced)
        terms = rehearsal_terms(window=window, limit=at_most)
        wishes = order.summary.instructions
        found = rehearse(self.entries, turns, self.loader, terms, wishes=wishes, reply=SHORTEST_ACCOUNT)
        computed = 0 if found.policy is None else estimate_tokens(found.policy.text)
        expected = computed + min(answer_budget(found.input), replaced * _WRITTEN_PERCENT // 100)
        details = details_of(self.config, model)
        usd = None
        if details.input_price is not None and details.output_price is not None:
            usd = (found.input * details.input_price + at_most * details.output_price) / _MILLION
        return SummaryPreview(
            turns=turns,
            model=str(model),
            before=round(self._tokens_of(Range(first=0, last=turns.first - 1)) * self._ratio),
            replaced=round(replaced * self._ratio),
            expected=round(min(expected, at_most) * self._ratio),
            at_most=round(at_most * self._ratio),
            input=found.input,
            calls=found.calls,
            usd=usd,
        )

    def _is_warm(self) -> bool:
        requests = [request for turn in usage_by_turn(self.entries) for request in turn.requests]
        if not requests or requests[-1].end is None:
            return False
        last = requests[-1]
        try:
            at = datetime.fromisoformat(last.end.at if last.end is not None else "").timestamp()
        except ValueError:
            return False
        return last.cache != "off" and self._now - at < cache_facts(*last.model).lifetime(last.cache)


def reasoning_lost(
    entries: Sequence[AnyEntry], overlays: Sequence[Compaction], config: AppConfig, loader: Loader
) -> LostReasoning:
    """Return what `overlays` would take from the next request to the model that was asked last.

    Reasoning that they strip themselves is not counted. A log that does not say what was sent gives nothing.
    """
    if not overlays:
        return LostReasoning()
    before, after = _withheld(entries, (), config, loader), _withheld(entries, overlays, config, loader)
    return _lost(entries, [origin for origin in after if origin not in before])


def reasoning_withheld(entries: Sequence[AnyEntry], config: AppConfig, loader: Loader) -> LostReasoning:
    """Return what the next request to the model that was asked last is without, since its prefix has changed."""
    return _lost(entries, _withheld(entries, (), config, loader))


def _withheld(
    entries: Sequence[AnyEntry], overlays: Sequence[Compaction], config: AppConfig, loader: Loader
) -> tuple[str, ...]:
    """Return the ids of reasoning that a request after `overlays` is without; none where the log does not say."""
    context = context_in_force(entries)
    if context is None:
        return ()
    kind = kind_of(config.providers.llm, context.provider)
    upcoming = (TurnStart(id="next-turn"), ChatRequest(id="next-request", content="."))
    try:
        adapter = create_adapter(config.providers.llm, context.provider, kind=kind)
        stream = (*entries, *overlays, *upcoming)
        thread = build_thread(
            stream, settings_of(context, loader), loader=loader, status_formatter=StatusLineFormatter()
        )
        return render_bound(adapter, thread, entries).withheld
    except JpError:
        # What cannot be asked again loses nothing; asking it says why.
        return ()


def _lost(entries: Sequence[AnyEntry], origins: Sequence[str]) -> LostReasoning:
    return LostReasoning(blocks=len(origins), tokens=_reasoning_tokens(entries, frozenset(origins)))


def _reasoning_tokens(entries: Sequence[AnyEntry], lost: frozenset[str]) -> int:
    """Return what the model took for reasoning: of an attempt that keeps some of it, a share."""
    total = 0.0
    pieces: list[ChatResponse] = []
    for entry in entries:
        if isinstance(entry, ChatResponse) and entry.reasoning is not None:
            pieces.append(entry)
        elif isinstance(entry, (CycleEnd, TurnStart)):
            gone = [piece for piece in pieces if piece.id in lost]
            told = entry.usage.reasoning if isinstance(entry, CycleEnd) else 0
            share = told * len(gone) / len(pieces) if told and pieces else 0
            total += share or sum(estimate_tokens(piece.reasoning or "") for piece in gone)
            pieces.clear()
    return round(total)


def _cost(effect: Effect, summary: SummaryPreview | None, details: ModelDetails, *, is_warm: bool) -> EditCost | None:
    if details.input_price is None or (summary is not None and summary.usd is None):
        return None
    prices = Prices(
        input=details.input_price, cache_read=details.cache_read_price, cache_write=details.cache_write_price
    )
    untouched, after, once = effect.untouched, effect.after, 0.0
    if summary is not None:
        untouched = min(untouched, summary.before)
        after -= max(summary.replaced - summary.expected, 0)
        once = summary.usd or 0.0
    edit = PromptEdit(before=effect.before - untouched, after=after - untouched, once=once)
    return cost_of_edit(edit, prices, is_warm=is_warm)


def _scaled(effect: Effect, ratio: float) -> Effect:
    return msgspec.structs.replace(
        effect,
        before=round(effect.before * ratio),
        after=round(effect.after * ratio),
        untouched=round(effect.untouched * ratio),
        largest=tuple(msgspec.structs.replace(item, tokens=round(item.tokens * ratio)) for item in effect.largest),
    )


class ProfileGain(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens that a profile would free, and of how many turns. With a summary it is the least that is certain."""

    profile: str
    freed: int
    turns: int
    with_summary: bool


def gains_of(planner: Planner, config: AppConfig, *, window: int | None, ratio: float) -> Sequence[ProfileGain]:
    """Return the profiles, those that free most first. `ratio` is the model's tokens for one estimated."""
    compaction = config.conversation.compaction
    gains: list[ProfileGain] = []
    for name in profiles_of(compaction):
        order = order_of(compaction, profile=name)
        plan = planner.plan(order.wish, order.bounds)
        covered = {number for overlay in plan.overlays for number in range(overlay.from_turn, overlay.to_turn + 1)}
        freed = planner.tokens - planner.size(plan.overlays)
        if plan.summary is not None:
            told = range(plan.summary.first, plan.summary.last + 1)
            replaced = sum(turn.tokens for turn in planner.shape.turns if turn.number in told)
            freed += max(replaced - summary_limit(window or LARGE_WINDOW), 0)
            covered.update(told)
        gains.append(
            ProfileGain(
                profile=name,
                freed=round(freed * ratio),
                turns=len(covered),
                with_summary=plan.summary is not None,
            )
        )
    return sorted(gains, key=lambda gain: (-gain.freed, gain.profile))
