"""Taking turns in one conversation, each shown as it comes, with a person who may step in."""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from typing import NoReturn

from msgspec.structs import replace

from jp.app.options import Options
from jp.app.places import open_workspace
from jp.app.query.arguments import QueryArguments
from jp.app.query.conversation import Begun
from jp.app.query.screen import Ended, Screen, TurnDisplay
from jp.app.query.wiring import Wiring
from jp.compaction.fact_lines import FactLines
from jp.conversation.entries import ChatRequest, ChatResponse, Revert, ToolCallRequest, TurnStart, Usage
from jp.render.stream import PausableRenderer
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.machine import limits_of, retry_policy_of
from jp.turn.ports import NoCap, NoRoom, Recorder, Room, SystemClock, TurnPorts


class Asker:
    """Takes one turn after the other. `recorder` is where they are written, in the conversation that has `begun`."""

    def __init__(
        self,
        options: Options,
        arguments: QueryArguments,
        wiring: Wiring,
        *,
        begun: Begun,
        recorder: Recorder,
        screen: Screen,
    ) -> None:
        self._options = options
        self._arguments = arguments
        self._wiring = wiring
        self._begun: Begun | None = begun  # until it was shown
        self._conversation = str(begun.info.id)
        self._screen = screen
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
                self._options.notice("stopped; what came is kept" if self._came() else "stopped; nothing had come")
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

    async def _take(self, request: ChatRequest, max_cycles: int) -> Ended:
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
            stand_ins=FactLines(),
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
        from jp.app.query.room import AutomaticRoom

        return AutomaticRoom(
            self._wiring,
            self._recorder,
            open_workspace(self._options),
            self._conversation,
            log=self._options.log,
            remembers=self._options.persist,
        )

    async def _abort(self) -> NoReturn:
        """Undo the turn, and end as after a Ctrl-C."""
        from anyio import sleep_forever

        turn = next(entry for entry in reversed(self._recorder.entries) if isinstance(entry, TurnStart))
        recorded = self._recorder.append(Revert(entries=(turn.id,)))
        if self._display is not None:
            self._display.entry(recorded)
        self._options.notice("aborted; the turn is undone, and stays in the log")
        self._screen.interruption.stop()
        await sleep_forever()
        raise AssertionError
