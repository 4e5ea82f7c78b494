"""A query's screen at a terminal or in a script: how a turn looks, and a person who may step in."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

from jp.app.query.arguments import DisplayOptions
from jp.app.query.conversation import is_attended
from jp.app.query.screen import Dialogue, Stoppable, TurnDisplay, TurnEnd
from jp.cli.options import GlobalOptions
from jp.cli.output import check_theme, preferences, standard_streams
from jp.cli.terminal.signals import Interruption
from jp.cli.terminal.streams import write_stderr, write_stdout
from jp.config.entries import ToolStyleConfig
from jp.config.model import AppConfig
from jp.conversation.entries import AnyEntry
from jp.conversation.thread import LogCursor
from jp.conversation.turns import TurnCounter
from jp.render.stream import Display, open_renderer
from jp.render.theme import use_color
from jp.turn.loop import TurnOutcome
from jp.turn.ports import Clock

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskGroup

    from jp.config.model import LlmConfig
    from jp.provider.discovery import Proposal
    from jp.tool.consent import Approver, Respondent


class TerminalScreen:
    """The standard streams of this process, and the person at its terminal, if there is one."""

    def __init__(self, options: GlobalOptions, interruption: Interruption, *, has_menu: bool = True) -> None:
        self._options = options
        self._has_menu = has_menu
        self.interruption = interruption
        self.is_watched = os.isatty(2) and not options.quiet

    def check(self, config: AppConfig) -> None:
        """See the port, `jp.app.query.screen.Screen`."""
        check_theme(self._options, config.style)

    def announce(self, conversation: str) -> None:
        """Print the id in a line of its own; as JSON, the header is such a line already."""
        if self._options.format != "json":
            write_stdout(f"{conversation}\n")

    def display(
        self, shown: DisplayOptions, config: AppConfig, *, clock: Clock, entries: Sequence[AnyEntry]
    ) -> TurnDisplay:
        """See the port."""
        return open_display(self._options, shown, config, clock=clock, entries=entries)

    def approver(self, dialogue: Dialogue, config: AppConfig) -> Approver | None:
        """See the port."""
        if not is_attended():
            return None
        from jp.cli.terminal.approval import TerminalApprover

        return TerminalApprover(dialogue, config.editor, self._options)

    def respondent(self, dialogue: Dialogue) -> Respondent | None:
        """See the port."""
        if not is_attended():
            return None
        from jp.cli.terminal.approval import TerminalRespondent

        return TerminalRespondent(dialogue)

    async def choose_model(self, found: Sequence[Proposal], settings: LlmConfig) -> str | None:
        """See the port."""
        if not is_attended():
            return None
        from jp.cli.init import ask_for_model

        return await ask_for_model(found, settings)

    async def watch(
        self, run: Callable[[], Awaitable[TurnOutcome]], display: TurnDisplay, tools: Stoppable, dialogue: Dialogue
    ) -> TurnEnd:
        """Run a turn. At a terminal it is shown for how long nothing came, and the first Ctrl-C asks what to do."""
        dialogue.color = use_color(self._options.color, os.environ, is_terminal=True)

        async def animated() -> TurnOutcome:
            is_watched = self._options.format == "pretty" or os.isatty(2)
            return await (_animated(run, display) if is_watched else run())

        if not (self._has_menu and os.isatty(1) and os.isatty(2)):
            return TurnEnd(outcome=await animated())
        ended = await TurnInterruption(self.interruption, dialogue, tools, ask_choice).steer(animated)
        if ended.reply is not None:
            write_stderr("\n")  # what was stopped and what is said next are two answers
        return ended


async def _animated(run: Callable[[], Awaitable[TurnOutcome]], display: TurnDisplay) -> TurnOutcome:
    """Run a turn, and show for how long nothing came."""
    from anyio import create_task_group

    outcomes: list[TurnOutcome] = []
    async with create_task_group() as tasks:
        tasks.start_soon(display.animate)
        outcomes.append(await run())
        tasks.cancel_scope.cancel()
    return outcomes[0]


def open_display(
    options: GlobalOptions, display: DisplayOptions, config: AppConfig, *, clock: Clock, entries: Sequence[AnyEntry]
) -> TurnDisplay:
    """Return the renderer of a turn. `entries` is the stream, which grows: it has the turn of each delivered copy."""
    cursor, counter, numbers = LogCursor(), TurnCounter(), dict[str, int | None]()

    def turn_of(entry_id: str) -> int | None:
        for entry in cursor.advance(entries)[0]:
            numbers.setdefault(entry.id, counter.add(entry))
        return numbers.get(entry_id)

    def tool_style(name: str) -> ToolStyleConfig:
        from jp.tool.toolbox import settings_of

        return settings_of(name, config.conversation.tools).style

    style = config.style
    shown = Display(
        preferences=preferences(options, style),
        answer=display.answer,
        reasoning=display.reasoning and style.reasoning.display == "full",
        tools=display.tools,
        tool_style=tool_style,
        is_streaming=display.stream,
        quiet=options.quiet,
        progress=options.progress_line(),
    )
    return open_renderer(options.format, shown, standard_streams(), clock=clock, turn_of=turn_of)


_Verb = Literal["continue", "reply", "respond", "stop", "abort"]


class InterruptMenu(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of a person, a verb for each key."""

    question: str
    verbs: dict[str, _Verb]


TURN_MENU = InterruptMenu(
    question="continue (c), reply (r), stop and keep (s), abort and undo (a)?",
    verbs={"c": "continue", "r": "reply", "s": "stop", "a": "abort"},
)
TOOLS_MENU = InterruptMenu(
    question="continue (c), stop the tools and tell the model (r), stop and keep (s), abort and undo (a)?",
    verbs={"c": "continue", "r": "respond", "s": "stop", "a": "abort"},
)


class InterruptChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A person's choice about a running turn.

    `reply` is their message: to a turn that ends for it, or with `respond` to a model whose tools are stopped.
    """

    verb: _Verb
    reply: str = ""


async def ask_choice(menu: InterruptMenu) -> InterruptChoice:
    """Ask at the terminal. If it is gone, or input ends, the turn stops; the output so far is kept."""
    from jp.render.prompts import ask_key, ask_line

    while True:
        key = await ask_key(menu.question, menu.verbs, default="c")
        verb: _Verb = "stop" if key is None else menu.verbs[key]
        match verb:
            case "respond":
                return InterruptChoice(verb=verb, reply=await ask_line("what to tell the model besides:") or "")
            case "reply":
                reply = await ask_line("your reply (empty: back to the choice):")
                if reply:
                    return InterruptChoice(verb=verb, reply=reply)
            case _:
                return InterruptChoice(verb=verb)


class TurnInterruption:
    """One turn under a person's eyes. `steer` once.

    The first Ctrl-C opens the question, and so does one after `continue`; one at the question stops the turn, as the
    only one does where nobody can be asked.
    """

    def __init__(
        self,
        interruption: Interruption,
        dialogue: Dialogue,
        tools: Stoppable,
        ask: Callable[[InterruptMenu], Awaitable[InterruptChoice]],
    ) -> None:
        self._interruption = interruption
        self._tools = tools
        self._dialogue = dialogue
        self._ask = ask
        self._choice: InterruptChoice | None = None

    async def steer(self, run: Callable[[], Awaitable[TurnOutcome]]) -> TurnEnd:
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
            self._choice = InterruptChoice(verb="reply", reply=words)
            work.cancel()

    def _ended(self, outcome: TurnOutcome | None) -> TurnEnd:
        match self._choice:
            case InterruptChoice(verb="reply", reply=reply):
                return TurnEnd(reply=reply)
            case InterruptChoice(verb="abort"):
                return TurnEnd(is_aborted=True)
            case _:
                return TurnEnd(outcome=outcome)
