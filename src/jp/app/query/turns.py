"""The turns of a query, and the title of a new conversation, which is written meanwhile."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from itertools import takewhile
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

import msgspec
from msgspec.structs import replace

from jp.app.models import listed_abilities
from jp.app.query.conversation import ConversationContext
from jp.app.query.screen import TurnDisplay, TurnEnd
from jp.app.query.wiring import Wiring
from jp.compaction.fact_lines import StatusLineFormatter
from jp.conversation.entries import ChatRequest, ChatResponse, Revert, ToolCallRequest, TurnStart, Usage
from jp.conversation.thread import Thread
from jp.errors import JpError
from jp.provider.base import Part, Provider, WireRequest
from jp.provider.registry import ModelId, cloud_of, parse_model_id
from jp.remedies import phrase
from jp.render.stream import PausableRenderer
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.machine import limits_of, retry_policy_of
from jp.turn.measuring import RelayingProvider
from jp.turn.ports import NoCap, NoRoom, Recorder, Room, SystemClock, TurnPorts

if TYPE_CHECKING:
    from asyncio import Task

    from jp.turn.cost_cap import CappedProvider
    from jp.workspace.listing import Metadata


class TurnRunner:
    """Takes one turn after the other. `recorder` is where they are written, in the conversation that has `begun`."""

    def __init__(
        self,
        wiring: Wiring,
        *,
        begun: ConversationContext,
        recorder: Recorder,
    ) -> None:
        self._wiring = wiring
        self._arguments = arguments = wiring.context.arguments
        self._begun: ConversationContext | None = begun  # until it was shown
        self._conversation = str(begun.info.id)
        self._screen = wiring.context.screen
        self._display: TurnDisplay | None = None  # of the turn that was taken last
        self._recorder = recorder
        self._config = wiring.config
        limits = limits_of(wiring.config)
        self.limits = limits if arguments.max_cycles is None else replace(limits, max_cycles=arguments.max_cycles)

    async def ask(self, request: ChatRequest, max_cycles: int) -> TurnOutcome:
        """Take a turn; where a person replies to it before it ends, another one, and so on.

        Where it is cancelled, or a person aborts it, this does not return.
        """
        from anyio import get_cancelled_exc_class

        while True:
            if not self._permits(request):
                return TurnOutcome(ending="capped", cycles=0, usage=Usage())
            try:
                ended = await self._take(request, max_cycles)
            except get_cancelled_exc_class():
                is_kept = self._came()
                self._wiring.notice("stopped; the output so far is kept" if is_kept else "stopped before any output")
                raise
            if ended.outcome is not None:
                return ended.outcome
            if ended.is_aborted:
                await self._abort()
            request = ChatRequest(content=ended.reply or "", author=request.author, schema=request.schema)

    def _permits(self, request: ChatRequest) -> bool:
        """Return whether a turn may begin. The first one was already asked about before anything was written."""
        cap = self._wiring.cap
        if cap is None or self._begun is not None:
            return True
        from jp.app.query.budget import permits_turn

        return permits_turn(cap, self._recorder.entries, request, self._wiring.settings, self._recorder)

    def _came(self) -> bool:
        """Return whether the newest turn has had any result."""
        newest = takewhile(lambda entry: not isinstance(entry, TurnStart), reversed(self._recorder.entries))
        return any(isinstance(entry, ChatResponse | ToolCallRequest) for entry in newest)

    async def _take(self, request: ChatRequest, max_cycles: int) -> TurnEnd:
        clock = SystemClock()
        arguments, config = self._arguments, self._config
        display = self._screen.display(arguments.display, config, clock=clock, entries=self._recorder.entries)
        if self._begun is not None:
            display.begin(str(self._begun.info.id), self._begun.entries)
            self._begun = None
        self._display = display
        renderer = PausableRenderer(display)
        dialogue = self._wiring.dialogue
        dialogue.screen = renderer
        ports = TurnPorts(
            provider=self._wiring.provider,
            recorder=self._recorder,
            renderer=renderer,
            tools=self._wiring.tools,
            clock=clock,
            status_formatter=StatusLineFormatter(),
            cap=self._wiring.cap or NoCap(),
            room=self._room(),
        )
        limits = replace(self.limits, max_cycles=max_cycles)
        turn = TurnLoop(ports, self._wiring.settings, limits=limits, retry=retry_policy_of(config))
        return await self._screen.watch(partial(turn.run, request), display, self._wiring.tools, dialogue)

    def _room(self) -> Room:
        """Return the room that frees space in the model's window: one that does nothing, unless that is configured."""
        if not self._config.conversation.compaction.auto.enabled:
            return NoRoom()
        from jp.app.query.auto_compaction import AutomaticCompaction

        return AutomaticCompaction(self._wiring, self._recorder, self._conversation)

    async def _abort(self) -> NoReturn:
        """Undo the turn, and end as after a Ctrl-C."""
        from anyio import sleep_forever

        turn = next(entry for entry in reversed(self._recorder.entries) if isinstance(entry, TurnStart))
        recorded = self._recorder.append(Revert(entries=(turn.id,)))
        if self._display is not None:
            self._display.entry(recorded)
        self._wiring.notice("aborted; the turn is undone, and stays in the log")
        self._screen.interruption.stop()
        await sleep_forever()
        raise AssertionError


GRACE_SECS = 1.0
"""For how long a command waits for a title when its answer is complete."""

_LAST_TURN = 2
"""A conversation without a title after its first three turns gets none automatically."""


class TitleCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a title: tokens of which model."""

    model: ModelId
    usage: Usage


class WatchedProvider(RelayingProvider):
    """A provider that calls `begin` with the first part of another provider's answer."""

    def __init__(self, provider: Provider, begin: Callable[[], None]) -> None:
        super().__init__(provider)
        self._begin = begin

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        """See the port."""
        async with aclosing(self.inner.stream(request)) as parts:
            async for part in parts:
                self._begin()
                yield part


class TitleWriter:
    """Gives a conversation its title, if it needs one. A context manager: outside of it, nothing goes on.

    `wiring` is what the turn works with, so that it begins with the first part of an answer.
    """

    def __init__(
        self,
        wiring: Wiring,
        *,
        begun: ConversationContext,
        recorder: Recorder,
    ) -> None:
        self._options = options = wiring.context.options
        self._plain = wiring
        self._begun = begun
        self._recorder = recorder
        self._config = wiring.config
        self._screen = wiring.context.screen
        self._task: Task[None] | None = None
        self._spent: TitleCost | None = None
        is_open = options.persist and begun.info.metadata.wants_title
        self.wiring = replace(wiring, provider=WatchedProvider(wiring.provider, self._begin)) if is_open else wiring

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def settle(self, *, answered: bool) -> TitleCost | None:
        """Wait a moment for the title, unless the turn has come to nothing; what it cost. A Ctrl-C ends the wait."""
        task = self._task
        if task is not None and answered:
            self._screen.interruption.offer(lambda: _leave(task))
            from asyncio import wait

            from anyio import current_effective_deadline, current_time

            left = current_effective_deadline() - current_time()
            await wait({task}, timeout=max(0.0, min(GRACE_SECS, left / 2)))
            self._screen.interruption.withdraw()
            if not task.done():
                self._options.log("no title: it took too long; the next turn tries again, up to the third")
        await self._stop()
        return self._spent

    def _begin(self) -> None:
        if self._task is None:
            from asyncio import get_running_loop

            self._task = get_running_loop().create_task(self._give_title())

    async def _stop(self) -> None:
        if self._task is None:
            return
        from asyncio import wait

        from anyio import CancelScope

        self._task.cancel()
        with CancelScope(shield=True):
            await wait({self._task})

    async def _give_title(self) -> None:
        try:
            title = await self._title()
            if title:
                self._write(title)
        except JpError as error:
            self._options.log(phrase("no title: ", error.message))
        except Exception as error:  # noqa: BLE001  a title is never worth a query
            self._options.log(f"no title: {type(error).__name__}: {error}")

    async def _title(self) -> str:
        from jp.app.query.earlier_turns import effective_turns, heading_of, request_of, title_in, title_thread

        turns = effective_turns(self._recorder.entries)
        requests = [request.content for request in map(request_of, turns) if request and request.content.strip()]
        if not requests or len(turns) > _LAST_TURN + 1:
            return ""
        heading = heading_of(requests[0]) if self._config.conversation.title.from_heading else ""
        if heading:
            return heading
        model = self._model()
        if model is None:
            return ""
        provider, thread = await self._provider_of(model), title_thread(model.name, requests)
        parameters = replace(thread.parameters, abilities=listed_abilities(self._config, model))
        thread = replace(thread, parameters=parameters)
        if self._plain.cap is not None:
            provider = self._paid(self._plain.cap, provider, model, thread)
        answer = await self._ask(provider, model, thread)
        title = title_in(answer)
        if not title:
            self._options.log(f"no title: {str(model)!r} gave none")
        return title

    def _model(self) -> ModelId | None:
        """Return the model that writes the title; None where none is to."""
        from jp.provider.models import small_model

        generate = self._config.conversation.title.generate
        is_wanted = self._screen.is_watched if generate.auto == "terminal" else generate.auto
        if not is_wanted or self._begun.info.metadata.expires_at is not None:
            return None
        if generate.model is not None:
            return parse_model_id(generate.model, self._config.providers.llm)
        main = self._plain.model
        # A cloud has what was made available there, under names of its own.
        is_vendors = cloud_of(self._config.providers.llm, main.provider) is None
        name = small_model(main.provider, main.name) if is_vendors else None
        if name is None:
            why = f"no cheap model is known beside {str(main)!r}; 'conversation.title.generate.model' names one"
            self._options.log(f"no title: {why}")
        return None if name is None else ModelId(main.provider, name)

    async def _provider_of(self, model: ModelId) -> Provider:
        # A scenario is of one name, while an account gives all models.
        if model.provider == self._plain.model.provider != "script":
            return self._plain.provider
        from anyio.to_thread import run_sync

        def create() -> Provider:
            from jp.app.models import UserKeys
            from jp.provider.registry import create_provider

            root = self._plain.context.root
            return create_provider(self._config, model, environ=os.environ, root=root, stored=UserKeys())

        return await run_sync(create, abandon_on_cancel=True)

    def _paid(self, cap: CappedProvider, provider: Provider, model: ModelId, thread: Thread) -> Provider:
        """Return the provider of a title, which is paid from what the turn may cost.

        Raises:
            JpError: it cannot be paid, or nobody knows what it costs.
        """
        from jp.app.query.budget import beside

        paid = beside(cap, provider, model, self._config)
        if not paid.permits(paid.render(thread)):
            raise JpError("the limit on costs leaves nothing for it")
        return paid

    async def _ask(self, provider: Provider, model: ModelId, thread: Thread) -> str:
        from jp.provider.base import DataDelta, TextDelta, UsageReport

        texts: list[str] = []
        async with aclosing(provider.stream(provider.render(thread))) as parts:
            async for part in parts:
                match part:
                    case TextDelta(text=text) | DataDelta(text=text):
                        texts.append(text)
                    case UsageReport(usage=usage):
                        self._spent = TitleCost(model=model, usage=usage)
                    case _:
                        pass
        return "".join(texts)

    def _write(self, title: str) -> None:
        """Write the title where there is still none. The query holds the conversation's lock."""
        from jp.render.sanitize import mask
        from jp.workspace.listing import update_metadata

        safe = mask(title, os.environ)

        def change(before: Metadata) -> Metadata:
            return replace(before, title=safe) if before.wants_title else before

        update_metadata(self._begun.info.directory, change)
        self._options.log(f"title: {safe!r}")


def _leave(task: Task[None]) -> None:
    from jp.render.tty import leave_echo

    leave_echo()
    task.cancel()
