"""What Ctrl-C does at a terminal while a turn runs: it asks what is to become of the turn, which goes on meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, Protocol, assert_never

import msgspec

from jp.cli.dialogue import Dialogue
from jp.cli.signals import Interruption
from jp.turn.loop import TurnOutcome

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskGroup

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
