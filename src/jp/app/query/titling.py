"""A title for a conversation that has none, while a turn of it runs.

It begins with the first part of the answer, so the question itself is never delayed, and nothing of it makes a query
fail. Its request goes to the provider beside the turn's, and is no part of the log.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec.structs import replace

from jp.app.models import listed_abilities
from jp.app.options import Options
from jp.app.query.conversation import Begun
from jp.app.query.screen import Screen
from jp.app.query.wiring import Wiring
from jp.conversation.entries import Usage
from jp.conversation.thread import Thread
from jp.errors import JpError
from jp.provider.base import Part, Provider, WireRequest
from jp.provider.errors import ProviderError
from jp.provider.registry import ModelId, cloud_of, parse_model_id
from jp.turn.ports import Recorder

if TYPE_CHECKING:
    from asyncio import Task

    from jp.turn.cost_cap import CappedProvider
    from jp.workspace.listing import Metadata


GRACE_SECS = 1.0
"""For how long a command waits for a title when its answer is complete."""

_LAST_TURN = 2
"""A conversation that got no title in its first three turns gets none by itself any more."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of a title: tokens of which model."""

    model: ModelId
    usage: Usage


class Watched:
    """A provider that tells of the first part which comes from another one."""

    def __init__(self, provider: Provider, begin: Callable[[], None]) -> None:
        self._provider = provider
        self._begin = begin

    @property
    def id(self) -> str:
        """See the port."""
        return self._provider.id

    @property
    def renderer(self) -> int:
        """See the port."""
        return self._provider.renderer

    def render(self, thread: Thread) -> WireRequest:
        """See the port."""
        return self._provider.render(thread)

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """See the port."""
        return self._provider.locate_rejected(thread, error)

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        """See the port."""
        async with aclosing(self._provider.stream(request)) as parts:
            async for part in parts:
                self._begin()
                yield part


class Titling:
    """Gives a conversation its title, if it needs one. A context manager: outside of it, nothing goes on.

    `wiring` is what the turn works with, so that it begins with the first part of an answer.
    """

    def __init__(
        self,
        options: Options,
        wiring: Wiring,
        *,
        begun: Begun,
        recorder: Recorder,
        screen: Screen,
    ) -> None:
        self._options = options
        self._plain = wiring
        self._begun = begun
        self._recorder = recorder
        self._config = wiring.config
        self._screen = screen
        self._task: Task[None] | None = None
        self._spent: Spent | None = None
        is_open = options.persist and begun.info.metadata.wants_title
        self.wiring = replace(wiring, provider=Watched(wiring.provider, self._begin)) if is_open else wiring

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def settle(self, *, answered: bool) -> Spent | None:
        """Wait a moment for the title, unless the turn has come to nothing; what it cost. A Ctrl-C ends the wait."""
        task = self._task
        if task is not None and answered:
            from asyncio import wait

            from anyio import current_effective_deadline, current_time

            left = current_effective_deadline() - current_time()
            self._screen.interruption.offer(lambda: _leave(task))
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
            self._options.log(f"no title: {error.message}")
        except Exception as error:  # noqa: BLE001  a title is never worth a query
            self._options.log(f"no title: {type(error).__name__}: {error}")

    async def _title(self) -> str:
        from jp.app.query.past import heading_of, request_of, standing_turns, title_in, title_thread

        turns = standing_turns(self._recorder.entries)
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
            from jp.app.keys import UserKeys
            from jp.app.places import base_directory, open_workspace
            from jp.provider.registry import create_provider

            root = base_directory(open_workspace(self._options))
            return create_provider(self._config, model, environ=os.environ, root=root, stored=UserKeys())

        return await run_sync(create, abandon_on_cancel=True)

    def _paid(self, cap: CappedProvider, provider: Provider, model: ModelId, thread: Thread) -> Provider:
        """The provider of a title, which is paid from what the turn may cost.

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
                        self._spent = Spent(model=model, usage=usage)
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
