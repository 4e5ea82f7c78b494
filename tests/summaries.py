"""Messages as a summary is made of them, and an account that a model may give."""

from __future__ import annotations

from collections.abc import Iterator

from artifacts import MemoryArtifacts
from jp.context.markers import Artifacts, Cutter
from jp.context.summary_fold import SummaryState
from jp.context.summary_schema import StructuredSummary
from jp.context.types import Call, Facts, Message, Meta, Transcript

NONCE = "5eed5eed"
FENCE = "a1B2c3D4e5F6a7B8"
ACCOUNT = StructuredSummary(goal="mend it", next_step="run the tests", requirements=("do step",))


def cutter() -> Cutter:
    return Cutter(NONCE, MemoryArtifacts())


def requirements_of(state: SummaryState, store: Artifacts) -> list[str]:
    """All that were ever required: those that stand in `state`, and those that its handle recalls."""
    found = list(state.account.requirements)
    handle = state.older_requirements
    while handle:
        lines = (store.recall(handle) or "").splitlines()
        chained = lines[0].startswith("Still older requirements: recall ")
        handle = lines.pop(0).rsplit(" ", 1)[1] if chained else ""
        found = [*lines, *found]
    return found


def user(text: str) -> Message:
    return Message(role="user", content=text)


def answer(text: str) -> Message:
    return Message(role="assistant", content=text)


def ran(command: str, output: str, *, call_id: str = "c", exit_code: int = 0, error: str = "") -> Transcript:
    """A round in which a command ran."""
    arguments = f'{{"command": "{command}"}}'
    facts = Facts(kind="terminal", exit_code=exit_code, first_error=error)
    return (
        Message(role="assistant", calls=(Call(id=call_id, name="run", arguments=arguments),)),
        Message(role="tool", call_id=call_id, content=output, meta=Meta(facts=facts)),
    )


def touched(kind: str, path: str, output: str = "ok") -> Transcript:
    """A round in which a file was read or changed."""
    return (
        Message(role="assistant", calls=(Call(id="f", name="fs", arguments=f'{{"path": "{path}"}}'),)),
        Message(role="tool", call_id="f", content=output, meta=Meta(facts=Facts(kind=kind, path=path))),
    )


def work(count: int = 6) -> Iterator[Message]:
    """Exchanges with a lot of output."""
    for number in range(count):
        yield user(f"do step {number}")
        yield from ran(f"make step{number}", f"line of output {number}\n" * 400, call_id=f"c{number}")
        yield answer(f"step {number} is done")


SYSTEM = Message(role="system", content="You help.")
