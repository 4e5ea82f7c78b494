"""What Ctrl-C does at a terminal while a turn runs: it asks what is to become of the turn, which goes on meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

from jp.cli.dialogue import Dialogue
from jp.cli.signals import Interruption
from jp.cli.streams import leave_echo
from jp.turn.loop import TurnOutcome

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskGroup

_QUESTION = "continue (c), reply (r), stop and keep (s), abort and undo (a)?"
_Verb = Literal["continue", "reply", "stop", "abort"]
_VERBS: dict[str, _Verb] = {"c": "continue", "r": "reply", "s": "stop", "a": "abort"}


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What a person wants of a turn that runs; `reply` is what they say to a turn that is to end for it."""

    verb: _Verb
    reply: str = ""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended: by itself, then with an `outcome`, or by what a person chose."""

    outcome: TurnOutcome | None = None
    reply: str | None = None
    is_aborted: bool = False


def ask_choice() -> Choice:
    """Ask at the terminal. Where it is gone, or input ends, the turn is to stop; what came is kept."""
    from jp.render.prompt import ask_key, ask_line

    while True:
        key = ask_key(_QUESTION, _VERBS, default="c")
        verb: _Verb = "stop" if key is None else _VERBS[key]
        if verb != "reply":
            return Choice(verb=verb)
        reply = ask_line("your reply (empty: back to the choice):")
        if reply:
            return Choice(verb=verb, reply=reply)


class Steering:
    """One turn under a person's eyes. `steer` once.

    The first Ctrl-C opens the question, and so does one after `continue`; one at the question stops the turn, as the
    only one does where nobody can be asked.
    """

    def __init__(self, interruption: Interruption, dialogue: Dialogue, ask: Callable[[], Choice]) -> None:
        self._interruption = interruption
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
            from jp.render.prompt import is_asking

            if is_asking():  # another question has the terminal
                leave_echo()
                self._interruption.stop()
            else:
                tasks.start_soon(self._choose, tasks, work)

        self._interruption.offer(respond)

    async def _choose(self, tasks: TaskGroup, work: CancelScope) -> None:
        from anyio.to_thread import run_sync

        async with self._dialogue.question():
            choice = await run_sync(self._ask, abandon_on_cancel=True)
        match choice.verb:
            case "continue":
                self._offer(tasks, work)
            case "stop":
                self._interruption.stop()
            case "reply" | "abort":
                self._choice = choice
                work.cancel()
            case _:
                assert_never(choice.verb)

    def _ended(self, outcome: TurnOutcome | None) -> Ended:
        match self._choice:
            case Choice(verb="reply", reply=reply):
                return Ended(reply=reply)
            case Choice(verb="abort"):
                return Ended(is_aborted=True)
            case _:
                return Ended(outcome=outcome)
