"""Compactions by summary, as a host of `jp.context` has them, with providers that are played."""

from __future__ import annotations

from collections.abc import Iterator

from artifacts import MemoryArtifacts
from jp.context.groups import leading_systems
from jp.context.markers import Artifacts, Cutter, checksum_of
from jp.context.policy import PolicyState, SummaryCircumstances
from jp.context.summarizing import Outcome, run, summarising
from jp.context.summary_asking import Asking, Setup, SummaryRequest, Terms
from jp.context.summary_schema import ErrorKind, StructuredSummary, SummaryError, SummaryReply
from jp.context.summary_text import SummaryState
from jp.context.types import Call, Facts, Message, Meta, Transcript

NONCE = "5eed5eed"
FENCE = "a1B2c3D4e5F6a7B8"
AT = SummaryCircumstances(now=1_000.0, configuration="one", used=0)
TERMS = Terms(window=200_000, limit=20_000, may_fall_back=True)
FRESH = PolicyState()
ACCOUNT = StructuredSummary(goal="mend it", next_step="run the tests", requirements=("do step",))


class Played:
    """A provider that gives these replies, one after the other, and the last one ever after."""

    def __init__(self, *replies: SummaryReply) -> None:
        self._replies = replies
        self.requests: list[SummaryRequest] = []

    def summarize(self, request: SummaryRequest) -> SummaryReply:
        self.requests.append(request)
        return self._replies[min(len(self.requests), len(self._replies)) - 1]


class ManyArtifacts:
    """A store whose handles are as long as it takes for none to be alike, so that it takes 100,000 contents quickly."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def handle(self, sha256: str) -> str:
        return sha256[:16]

    def keep(self, content: str) -> str:
        handle = self.handle(checksum_of(content))
        self.kept[handle] = content
        return handle

    def recall(self, handle: str) -> str | None:
        return self.kept.get(handle)


def cutter() -> Cutter:
    return Cutter(NONCE, MemoryArtifacts())


def setup(terms: Terms = TERMS, desk: Cutter | None = None) -> Setup:
    return Setup(terms=terms, asking=Asking(fence=FENCE, today="2026-11-21"), cutter=desk or cutter())


def compact(
    messages: Transcript,
    keep: int,
    provider: Played,
    host: Setup | None = None,
    *,
    policy: PolicyState = FRESH,
    at: SummaryCircumstances = AT,
) -> Outcome:
    """All but the system messages at the beginning and the last `keep` messages leave."""
    between = leading_systems(messages), max(len(messages) - keep, leading_systems(messages))
    return run(summarising(messages, between, host or setup(), policy=policy, at=at), provider)


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


def failing(kind: ErrorKind) -> Played:
    return Played(SummaryError(kind=kind, detail="it is said"))


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
WORK: Transcript = (SYSTEM, *work())
