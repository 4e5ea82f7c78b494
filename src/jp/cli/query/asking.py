"""Taking turns in one conversation, each shown as it comes, with a person who may step in."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from jp.cli.options import GlobalOptions
from jp.cli.output import log as log_line
from jp.cli.output import notice
from jp.cli.places import open_workspace
from jp.cli.query.arguments import QueryArguments
from jp.cli.query.conversation import Begun
from jp.cli.query.display import open_display
from jp.cli.query.steering import Ended, Steering, ask_choice
from jp.cli.query.wiring import Wiring
from jp.cli.signals import Interruption
from jp.cli.streams import write_stderr
from jp.compaction.fact_lines import FactLines
from jp.config.model import AppConfig
from jp.conversation.entries import ChatRequest, ChatResponse, Revert, ToolCallRequest, TurnStart, Usage
from jp.render.stream import PausableRenderer
from jp.render.theme import use_color
from jp.turn.clock import SystemClock
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.ports import NoCap, NoRoom, Recorder, Room, TurnPorts
from jp.turn.settings import limits_of, retry_policy_of

if TYPE_CHECKING:
    from jp.render.json_lines import JsonRenderer
    from jp.render.stream import AnswerRenderer

Animation = Callable[[], Coroutine[object, object, None]]


class Asker:
    """Takes one turn after the other. `recorder` is where they are written, in the conversation that has `begun`."""

    def __init__(
        self,
        options: GlobalOptions,
        arguments: QueryArguments,
        wiring: Wiring,
        *,
        begun: Begun,
        recorder: Recorder,
        config: AppConfig,
        interruption: Interruption,
    ) -> None:
        self._options = options
        self._arguments = arguments
        self._wiring = wiring
        self._begun: Begun | None = begun  # until it was shown
        self._conversation = str(begun.info.id)
        self._screen: AnswerRenderer | JsonRenderer | None = None  # of the turn that was taken last
        self._recorder = recorder
        self._config = config
        self._interruption = interruption
        limits = limits_of(config)
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
                notice(self._options, "stopped; what came is kept" if self._came() else "stopped; nothing had come")
                raise
            if ended.outcome is not None:
                return ended.outcome
            if ended.is_aborted:
                await self._abort()
            write_stderr("\n")  # what was stopped and what is said next are two answers
            request = ChatRequest(content=ended.reply or "", author=request.author, schema=request.schema)

    def _permits(self, request: ChatRequest) -> bool:
        """Whether a turn may begin. Of the first one that was asked before anything was written."""
        cap = self._wiring.cap
        if cap is None or self._begun is not None:
            return True
        from jp.cli.query.budget import permits_turn

        return permits_turn(cap, self._recorder.entries, request, self._wiring.settings, self._recorder)

    def _came(self) -> bool:
        """Whether anything came of the newest turn."""
        newest = takewhile(lambda entry: not isinstance(entry, TurnStart), reversed(self._recorder.entries))
        return any(isinstance(entry, ChatResponse | ToolCallRequest) for entry in newest)

    async def _take(self, request: ChatRequest, max_cycles: int) -> Ended:
        clock = SystemClock()
        arguments, config = self._arguments, self._config
        screen = open_display(self._options, arguments.display, config, clock=clock, entries=self._recorder.entries)
        if self._begun is not None:
            screen.begin(str(self._begun.info.id), self._begun.entries)
            self._begun = None
        self._screen = screen
        renderer = PausableRenderer(screen)
        dialogue = self._wiring.dialogue
        dialogue.screen = renderer
        dialogue.color = use_color(self._options.color, os.environ, is_terminal=True)
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

        async def run() -> TurnOutcome:
            is_watched = self._options.format == "pretty" or os.isatty(2)
            return await (_watched(turn, request, screen.animate) if is_watched else turn.run(request))

        if not (os.isatty(1) and os.isatty(2)):
            return Ended(outcome=await run())
        return await Steering(self._interruption, dialogue, self._wiring.tools, ask_choice).steer(run)

    def _room(self) -> Room:
        """Who makes room in the model's window: nobody, unless that is configured."""
        if not self._config.conversation.compaction.auto.enabled:
            return NoRoom()
        from jp.cli.query.room import AutomaticRoom

        return AutomaticRoom(
            self._wiring,
            self._recorder,
            open_workspace(self._options),
            self._conversation,
            log=partial(log_line, self._options),
            remembers=self._options.persist,
        )

    async def _abort(self) -> NoReturn:
        """Undo the turn, and end as after a Ctrl-C."""
        from anyio import sleep_forever

        turn = next(entry for entry in reversed(self._recorder.entries) if isinstance(entry, TurnStart))
        recorded = self._recorder.append(Revert(entries=(turn.id,)))
        if self._screen is not None:
            self._screen.entry(recorded)
        notice(self._options, "aborted; the turn is undone, and stays in the log")
        self._interruption.stop()
        await sleep_forever()
        raise AssertionError


async def _watched(turn: TurnLoop, request: ChatRequest, animate: Animation) -> TurnOutcome:
    """The outcome of a turn that somebody watches: it shows for how long nothing came."""
    from anyio import create_task_group

    outcomes: list[TurnOutcome] = []
    async with create_task_group() as tasks:
        tasks.start_soon(animate)
        outcomes.append(await turn.run(request))
        tasks.cancel_scope.cancel()
    return outcomes[0]
