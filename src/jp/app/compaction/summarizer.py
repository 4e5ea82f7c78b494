"""The model that writes summaries: asked as often as it takes, its answers read strictly."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from jp.app.compaction.order import SummaryOrder
from jp.app.options import AnyWorkspace, base_directory
from jp.compaction.log_contents import Leaf, LogContent
from jp.compaction.overlays import Range
from jp.compaction.summaries import SummaryExchange, SummaryResult, summarize_turns
from jp.config.model import AppConfig
from jp.context.estimate import estimate_tokens
from jp.context.redaction import redact
from jp.context.summary_asking import QuestionSettings, SummaryRequest, Terms, summary_limit
from jp.context.summary_schema import (
    ErrorKind,
    StructuredSummary,
    SummaryError,
    SummaryReply,
    answer_schema,
    read_answer,
)
from jp.conversation.entries import AnyEntry, SummaryPolicy, Usage, add_usage
from jp.conversation.resource import AudioBlock, ImageBlock
from jp.conversation.thread import Parameters, Thread, UserText
from jp.errors import ConfigurationError, ExitCode, JpError
from jp.provider.base import DataDelta, Finished, Provider, TextDelta, ToolCallStart, UsageReport
from jp.provider.errors import ErrorKind as ProviderErrorKind
from jp.provider.errors import ProviderError
from jp.provider.registry import ModelId
from jp.remedies import Option, phrase
from jp.turn.machine import retry_policy_of, waiting_time
from jp.turn.ports import Cap, Clock, NoCap, SystemClock
from jp.turn.request import Loader

if TYPE_CHECKING:
    from jp.turn.cost_cap import CappedProvider


Pay = Callable[[Provider, ModelId], "CappedProvider"]
"""Another model, paid from what a query may cost."""

MOST_CALLS = 12
"""The most requests to a model for one summary: a long range is told in parts."""

UNKNOWN_WINDOW = 32_000
"""The window assumed for a model that is to read, where nobody knows its window."""

LARGE_WINDOW = 200_000
"""The window assumed for a conversation's model, where nobody knows its window."""

_KINDS: dict[ProviderErrorKind, ErrorKind] = {
    "authentication": "auth",
    "quota": "quota",
    "rate_limit": "overloaded",
    "transient": "overloaded",
    "timeout": "timeout",
    "connect": "network",
    "cut": "stream_cut",
}


class SummaryFailedError(JpError):
    """A model gave no summary that can be used. `kind` says why."""

    exit_code = ExitCode.PROVIDER

    def __init__(self, message: str, *, kind: ErrorKind, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind: ErrorKind = kind


class SummaryUnpaidError(JpError):
    """A summary would cost more than may be spent."""

    exit_code = ExitCode.QUOTA


class WrittenSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A summary, by which model, and how many of its claims nothing bore out."""

    policy: SummaryPolicy
    model: ModelId
    usage: Usage
    unsupported: int


class Summarizer:
    """Has turns summarized by one model. `usage` is what all its answers took."""

    def __init__(
        self,
        config: AppConfig,
        model: ModelId,
        provider: Provider,
        *,
        notice: Callable[[str], None],
        cap: Cap | None = None,
    ) -> None:
        self.model = model
        self.usage = Usage()
        self._provider = provider
        self._cap = cap or NoCap()
        self._retry = retry_policy_of(config)
        self._window = window_of(config, model)
        self._notice = notice
        self._clock: Clock = SystemClock()
        self._error: ProviderError | None = None

    async def write(
        self, entries: Sequence[AnyEntry], found: Range, order: SummaryOrder, loader: Loader, *, limit: int
    ) -> WrittenSummary:
        """Return the summary of the turns of `found`, of at most `limit` tokens.

        Raises:
            ProviderError: the model could not be asked.
            SummaryFailedError: its answers cannot be used.
        """
        terms = Terms(window=self._window, limit=limit, may_fall_back=False, calls=MOST_CALLS)
        asking = QuestionSettings(fence=os.urandom(12).hex(), today=_today())
        steps = summarize_turns(
            entries, found, terms=terms, asking=asking, load=texts_of(loader), wishes=order.instructions
        )
        outcome = await self._run(steps, order)
        if isinstance(outcome, SummaryError):
            raise self._error or SummaryFailedError(
                f"{str(self.model)!r} gave no summary that can be used: {outcome.detail or outcome.kind}",
                kind=outcome.kind,
                hint=phrase(
                    *("try again, name another model with ", Option.MODEL),
                    *(", or write it without one with ", Option.LOCAL),
                ),
            )
        policy = replace(outcome.policy, model=str(self.model), usage=self.usage)
        return WrittenSummary(policy=policy, model=self.model, usage=self.usage, unsupported=outcome.unsupported)

    async def _run(self, steps: SummaryExchange, order: SummaryOrder) -> SummaryResult | SummaryError:
        try:
            request = next(steps)
            while True:
                request = steps.send(await self._reply(request, order))
        except StopIteration as end:
            outcome: SummaryResult | SummaryError = end.value
            return outcome

    async def _reply(self, request: SummaryRequest, order: SummaryOrder) -> SummaryReply:
        """Return an answer, asked for again after failures that may pass."""
        if request.parts > 1 and not request.is_repair:
            self._notice(f"summarizing part {request.part + 1} of {request.parts}")
        retry = 0
        while True:
            try:
                return await self._answer(request, order)
            except ProviderError as error:
                retry += 1
                wait = None
                if error.is_retryable:
                    wait = waiting_time(self._retry, error, retry=retry, jitter=self._clock.jitter())
                if wait is None:
                    self._error = error
                    return SummaryError(kind=_KINDS.get(error.kind, "no_provider"), detail=error.message)
                self._notice(phrase(error.message, f"; retry {retry} of {self._retry.max_retries} in {wait:.1f} s"))
                await self._clock.sleep(wait)

    async def _answer(self, request: SummaryRequest, order: SummaryOrder) -> SummaryReply:
        texts: list[str] = []
        finished: Finished | None = None
        called = False
        thread = summary_thread(self.model.name, request, order.instructions)
        wire = self._provider.render(thread)
        if not self._cap.permits(wire):
            hint = phrase("raise it with ", Option.MAX_COST)
            raise SummaryUnpaidError("the limit on costs leaves nothing for a summary", hint=hint)
        async with aclosing(self._provider.stream(wire)) as parts:
            async for part in parts:
                match part:
                    case TextDelta(text=text) | DataDelta(text=text):
                        texts.append(text)
                    case UsageReport(usage=usage):
                        self.usage = add_usage(self.usage, usage)
                    case ToolCallStart():
                        called = True
                    case Finished():
                        finished = part
                    case _:
                        pass
        if called and not texts:
            return SummaryError(kind="tool_markup", detail="the model called a tool instead of answering")
        return read_answer("".join(texts), is_complete=finished is not None and finished.reason == "stop")


def error_kind_of(error: JpError) -> ErrorKind:
    """Return the kind of an error of `Summarizer.write`, or of making one, which decides when to try again."""
    match error:
        case SummaryFailedError(kind=kind):
            return kind
        case ProviderError(kind=kind):
            return _KINDS.get(kind, "no_provider")
        case _:
            return "permission"


def summary_thread(model: str, request: SummaryRequest, instructions: str) -> Thread:
    """Return one question to a model, without secrets. `instructions` are the user's, besides those of every summary.

    The parts of the prompt that come from a record have none already: a line of it would be shortened in the end.
    """
    asked = request.prompt
    if instructions:
        asked = f"{asked}\n\nPay attention to this, too: {redact(instructions).text}"
    schema = answer_schema()
    return Thread(
        model=model,
        system=(),
        tools=(),
        events=(UserText(text=asked, turn=0, schema=schema),),
        parameters=Parameters(max_tokens=2 * request.budget, cache="off"),
        schema=schema,
    )


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """A summary without its model: about how many tokens it would read, in how many questions, and what is left to it.

    `policy` is the summary that comes of it; None where nothing was said.
    """

    input: int
    calls: int
    policy: SummaryPolicy | None


_UNANSWERED = SummaryError(kind="no_provider")

SHORTEST_ACCOUNT = StructuredSummary(goal="go on", next_step="go on", requirements=())
"""The least that a model may answer: what a summary has beside it is computed from the log."""


def rehearsal_terms(*, window: int, limit: int) -> Terms:
    """Return the terms of a summary of at most `limit` tokens by a model with this `window` that may fail."""
    return Terms(window=window, limit=limit, may_fall_back=True, calls=MOST_CALLS)


def rehearse(
    entries: Sequence[AnyEntry],
    found: Range,
    loader: Loader,
    terms: Terms,
    *,
    wishes: str = "",
    reply: SummaryReply = _UNANSWERED,
) -> Rehearsal:
    """Return a summary of `found` as if the model gave this reply; `wishes` are the user's instructions for it."""
    asking = QuestionSettings(fence="0" * 24, today=_today())
    steps = summarize_turns(entries, found, terms=terms, asking=asking, load=texts_of(loader), wishes=wishes)
    tokens = calls = 0
    policy: SummaryPolicy | None = None
    try:
        request = next(steps)
        calls = request.parts
        tokens = estimate_tokens(request.prompt) * calls
        while True:
            steps.send(reply)
    except StopIteration as end:
        outcome: SummaryResult | SummaryError = end.value
        policy = outcome.policy if isinstance(outcome, SummaryResult) else None
    return Rehearsal(input=tokens, calls=calls, policy=policy)


def local_summary(entries: Sequence[AnyEntry], found: Range, loader: Loader, *, limit: int) -> SummaryPolicy | None:
    """Return a summary of `found` that no model has written, and that says so; None where nothing was said there."""
    terms = Terms(window=UNKNOWN_WINDOW, limit=limit, may_fall_back=True, calls=0)
    return rehearse(entries, found, loader, terms).policy


def limit_of(config: AppConfig, model: ModelId) -> int:
    """Return the most tokens that a summary may have in a conversation with `model`."""
    from jp.app.models import details_of

    return summary_limit(details_of(config, model).context_window or LARGE_WINDOW)


def window_of(config: AppConfig, model: ModelId) -> int:
    """Return the window of a model, or what is taken for it."""
    from jp.app.models import details_of

    return details_of(config, model).context_window or UNKNOWN_WINDOW


def summarizer_for(
    config: AppConfig,
    order: SummaryOrder,
    workspace: AnyWorkspace,
    *,
    model: ModelId,
    notice: Callable[[str], None],
    pay: Pay | None = None,
) -> Summarizer:
    """Return the one whom `order` names, else `model`, the conversation's own; `pay` holds it to a limit on costs.

    Raises:
        JpError: there is no key, or nobody is known by that name.
    """
    from jp.app.models import UserKeys
    from jp.provider.registry import create_provider

    chosen = summary_model(config, order, model)
    provider = create_provider(config, chosen, environ=os.environ, root=base_directory(workspace), stored=UserKeys())
    if pay is None:
        return Summarizer(config, chosen, provider, notice=notice)
    paid = pay(provider, chosen)
    return Summarizer(config, chosen, paid, notice=notice, cap=paid)


def summary_model(config: AppConfig, order: SummaryOrder, model: ModelId) -> ModelId:
    """Return the model that writes the summary. `model` is the conversation's own, without a name where none is known.

    Raises:
        ConfigurationError: there is nobody, or nobody is known by that name.
    """
    from jp.provider.registry import parse_model_id

    if order.model is None and model.name:
        return model
    name = order.model or config.assistant.model.id
    if name is None:
        raise ConfigurationError("there is no model to write the summary", hint=phrase("name one with ", Option.MODEL))
    return parse_model_id(name, config.providers.llm)


def texts_of(loader: Loader) -> Callable[[LogContent], str | None]:
    """Reads text content by `loader`; what is no text, or is gone, has none."""

    def load(content: LogContent) -> str | None:
        if isinstance(content, Leaf):
            return content.text
        if isinstance(content, ImageBlock | AudioBlock):
            return None
        try:
            return loader.load(content).text
        except JpError:
            return None

    return load


def _today() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).date().isoformat()
