"""Taking turns in one conversation, each shown as it comes, with a person who may step in."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol, assert_never

import msgspec
from msgspec.structs import replace

from jp.cli.dialogue import Dialogue
from jp.cli.options import GlobalOptions
from jp.cli.output import log as log_line
from jp.cli.output import notice
from jp.cli.places import open_workspace
from jp.cli.query.arguments import QueryArguments
from jp.cli.query.conversation import Begun
from jp.cli.query.display import open_display
from jp.cli.query.wiring import Wiring
from jp.cli.signals import Interruption
from jp.cli.streams import write_stderr
from jp.compaction.fact_lines import FactLines
from jp.config.model import AppConfig
from jp.conversation.entries import ChatRequest, ChatResponse, Revert, ToolCallRequest, TurnStart, Usage
from jp.render.stream import PausableRenderer
from jp.render.theme import use_color
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.ports import NoCap, NoRoom, Recorder, Room, SystemClock, TurnPorts
from jp.turn.settings import limits_of, retry_policy_of

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskGroup

    from jp.render.json_lines import JsonRenderer
    from jp.render.stream import AnswerRenderer


_Verb = Literal["continue", "reply", "respond", "stop", "abort"]


class Menu(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may choose from, a verb for each key."""

    question: str
    verbs: dict[str, _Verb]


TURN_MENU = Menu(
    question="continue (c), reply (r), stop and keep (s), abort and undo (a)?",
    verbs={"c": "continue", "r": "reply", "s": "stop", "a": "abort"},
)
TOOLS_MENU = Menu(
    question="continue (c), stop the tools and tell the model (r), stop and keep (s), abort and undo (a)?",
    verbs={"c": "continue", "r": "respond", "s": "stop", "a": "abort"},
)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What a person wants of a turn that runs.

    `reply` is what they say: to a turn that is to end for it, or with `respond` to a model whose tools are stopped.
    """

    verb: _Verb
    reply: str = ""


class Stoppable(Protocol):
    """The tools of a turn."""

    @property
    def is_running(self) -> bool:
        """Whether calls run."""
        ...

    def stop(self, words: str = "") -> None:
        """Stop all calls; the model is told so, with the person's words."""
        ...


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended: by itself, then with an `outcome`, or by what a person chose."""

    outcome: TurnOutcome | None = None
    reply: str | None = None
    is_aborted: bool = False


async def ask_choice(menu: Menu) -> Choice:
    """Ask at the terminal. Where it is gone, or input ends, the turn is to stop; what came is kept."""
    from jp.render.prompts import ask_key, ask_line

    while True:
        key = await ask_key(menu.question, menu.verbs, default="c")
        verb: _Verb = "stop" if key is None else menu.verbs[key]
        match verb:
            case "respond":
                return Choice(verb=verb, reply=await ask_line("what to tell the model besides:") or "")
            case "reply":
                reply = await ask_line("your reply (empty: back to the choice):")
                if reply:
                    return Choice(verb=verb, reply=reply)
            case _:
                return Choice(verb=verb)


class Steering:
    """One turn under a person's eyes. `steer` once.

    The first Ctrl-C opens the question, and so does one after `continue`; one at the question stops the turn, as the
    only one does where nobody can be asked.
    """

    def __init__(
        self,
        interruption: Interruption,
        dialogue: Dialogue,
        tools: Stoppable,
        ask: Callable[[Menu], Awaitable[Choice]],
    ) -> None:
        self._interruption = interruption
        self._tools = tools
        self._dialogue = dialogue
        self._ask = ask
        self._choice: Choice | None = None

    async def steer(self, run: Callable[[], Awaitable[TurnOutcome]]) -> Ended:
        """Run a turn. Where it ends while the question is open, the answer still counts."""
        from anyio import CancelScope, create_task_group

        outcomes: list[TurnOutcome] = []
        async with create_task_group() as tasks:
            work = CancelScope()
            self._offer(tasks, work)
            with work:
                outcomes.append(await run())
            self._interruption.withdraw()
        return self._ended(outcomes[0] if outcomes else None)

    def _offer(self, tasks: TaskGroup, work: CancelScope) -> None:
        def respond() -> None:
            from jp.render.tty import is_asking

            if is_asking():  # another question has the terminal
                self._interruption.stop()
            else:
                tasks.start_soon(self._choose, tasks, work)

        self._interruption.offer(respond)

    async def _choose(self, tasks: TaskGroup, work: CancelScope) -> None:
        async with self._dialogue.question():
            menu = TOOLS_MENU if self._tools.is_running else TURN_MENU
            choice = await self._ask(menu)
        match choice.verb:
            case "continue":
                self._offer(tasks, work)
            case "respond":
                self._respond(choice.reply, tasks, work)
            case "stop":
                self._interruption.stop()
            case "reply" | "abort":
                self._choice = choice
                work.cancel()
            case _:
                assert_never(choice.verb)

    def _respond(self, words: str, tasks: TaskGroup, work: CancelScope) -> None:
        """Stop the tools. Where they have ended meanwhile, the words are a reply to the turn."""
        if self._tools.is_running or not words:
            self._tools.stop(words)
            self._offer(tasks, work)
        else:
            self._choice = Choice(verb="reply", reply=words)
            work.cancel()

    def _ended(self, outcome: TurnOutcome | None) -> Ended:
        match self._choice:
            case Choice(verb="reply", reply=reply):
                return Ended(reply=reply)
            case Choice(verb="abort"):
                return Ended(is_aborted=True)
            case _:
                return Ended(outcome=outcome)


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
