"""What sessions cost at a provider that keeps the beginning of prompts in a cache, simulated request by request.

A request is what stands before an answer. What it has in common with the request before, message by message, is read
at a tenth of the price of input, and the rest is written at one and a quarter. Before each request the scheme decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from context.availability import OURS, SCHEMES
from context.baselines import Masking, Placeholders
from context.gold import Place, availability, found_in, gold_of, one_line, places_of
from context.schemes import Named, OurPasses, Scheme
from context.sessions import Session
from jp.context.budget import estimate_messages
from jp.context.groups import index_groups
from jp.context.types import Call, Facts, Message, Meta, Transcript

READ = 0.1
WRITTEN = 1.25
WINDOW_PERCENT = 50
"""Of a whole session: so long may its requests be, so that it has to be compacted a few times."""

TARGET_PERCENT = 50
SYNTHETIC_CALLS = 300
SYNTHETIC_LIMIT = 100_000


class Bill(NamedTuple):
    """One scheme over a session, in tokens; `billed` are such as an uncached one costs.

    `breaks` are the requests that do not begin with all of the request before. `closed` and `recoverable` are the
    shares of what the session held that the last request has, or recalls.
    """

    requests: int
    prompt: int
    read: int
    billed: float
    compactions: int
    breaks: int
    longest: int
    closed: float
    recoverable: float


class Tighter(OurPasses):
    """Ours, with half of the target."""

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """As ours."""
        return super().compact(messages, target // 2)


class _Growing:
    """The context of a session as its scheme keeps it."""

    def __init__(self, scheme: Scheme, limit: int) -> None:
        self._scheme = scheme
        self._limit = limit
        self.context: Transcript = ()
        self.compactions = 0

    def before_request(self, new: Transcript) -> Transcript:
        """What is sent, after `new` messages came."""
        self.context = (*self.context, *new)
        if isinstance(self._scheme, Masking | Placeholders):
            self.context = self._scheme.applied(self.context)
        if estimate_messages(self.context) > self._limit:
            self.context = self._scheme.compact(self.context, self._limit * TARGET_PERCENT // 100)
            self.compactions += 1
        return self.context


class Unchanged:
    """No scheme: everything is sent."""

    def compact(self, messages: Transcript, target: int) -> Transcript:
        """`messages`."""
        return messages

    def recallable(self, messages: Transcript) -> Iterator[str]:
        """Nothing."""
        return iter(())


def bill_of(scheme: Scheme, messages: Transcript, limit: int) -> Bill:
    """What the requests for all answers in `messages` cost, where compaction begins above `limit` tokens."""
    growing = _Growing(scheme, limit)
    sent: Transcript = ()
    prompt = read = breaks = requests = longest = 0
    for new in _requests(messages):
        context = growing.before_request(new)
        common = _common(sent, context)
        tokens, kept = estimate_messages(context), estimate_messages(context[:common])
        breaks += common < len(sent)
        prompt, read, requests, longest = prompt + tokens, read + kept, requests + 1, max(longest, tokens)
        sent = context
    billed = READ * read + WRITTEN * (prompt - read)
    facts = gold_of(messages)
    closed = found_in(facts, places_of(sent))
    recalled = found_in(facts, [Place(one_line(text)) for text in scheme.recallable(sent)])
    return Bill(
        requests,
        prompt,
        read,
        billed,
        growing.compactions,
        breaks,
        longest,
        availability(facts, closed),
        availability(facts, closed | recalled),
    )


def _requests(messages: Transcript) -> Iterator[Transcript]:
    """What is new in each request: the last answer with the results of its calls, or what the person said."""
    start = 0
    for group in index_groups(messages).groups:
        if messages[group.start].role == "assistant":
            yield messages[start : group.start]
            start = group.start


def _common(before: Transcript, after: Transcript) -> int:
    pairs = zip(before, after, strict=False)
    differ = (at for at, (old, new) in enumerate(pairs) if old is not new and old != new)
    return next(differ, min(len(before), len(after)))


def synthetic_session(calls: int = SYNTHETIC_CALLS) -> Transcript:
    """A trace with that many calls: reads, searches and commands, whose results have 400 to 8,000 characters."""
    rows = [Message(role="system", content="You help with code. " * 400)]
    for number in range(calls):
        if number % 25 == 0:
            rows.append(Message(role="user", content=f"Mend part {number // 25} and see that the tests of it pass."))
        name, facts, arguments = _tool(number)
        rows.append(Message(role="assistant", calls=(Call(id=f"c{number}", name=name, arguments=arguments),)))
        ended = "Process exited with code 0\n" if name == "bash" else ""
        body = f"{ended}result {number}\n" + f"line of what was found in part {number % 25}\n" * (
            10 + 37 * number % 190
        )
        rows.append(Message(role="tool", call_id=f"c{number}", content=body, meta=Meta(facts=facts)))
    rows.append(Message(role="assistant", content="It is done."))
    return tuple(rows)


def _tool(number: int) -> tuple[str, Facts, str]:
    path = f"src/part_{number % 25}.py"
    match number % 3:
        case 0:
            return "read", Facts(kind="read", path=path), f'{{"path": "{path}"}}'
        case 1:
            return "grep", Facts(kind="search", matches=number), f'{{"pattern": "part_{number}"}}'
        case _:
            return "bash", Facts(kind="terminal", exit_code=0), f'{{"command": "pytest tests/{number}"}}'


def lines(sessions: Sequence[Session], report: Callable[[str], None]) -> Iterator[str]:
    """Two tables: all recorded sessions together, and the synthetic one."""
    cases = [("The synthetic session of 300 calls", [(synthetic_session(), SYNTHETIC_LIMIT)])]
    if sessions:
        limits = [estimate_messages(session.messages) * WINDOW_PERCENT // 100 for session in sessions]
        recorded = [(session.messages, limit) for session, limit in zip(sessions, limits, strict=True)]
        cases.insert(0, (f"{len(sessions)} recorded sessions, each with half of its length as its limit", recorded))
    for title, traces in cases:
        yield title
        yield from _table(title, traces, report)
        yield ""


def _table(title: str, traces: Sequence[tuple[Transcript, int]], report: Callable[[str], None]) -> Iterator[str]:
    schemes = (Named("nothing left out", Unchanged), *SCHEMES, Named(f"{OURS}, half the target", Tighter))
    bills: dict[str, list[Bill]] = {}
    for scheme in schemes:
        report(f"cache, {title}: {scheme.name}")
        bills[scheme.name] = [bill_of(scheme.make(), messages, limit) for messages, limit in traces]
    ours = sum(bill.billed for bill in bills[OURS])
    names = ("hit rate %", "compactions", "breaks", "billed tokens", "x ours", "closed %", "recall %")
    yield f"{'':<26}" + "".join(f"{name:>{len(name) + 3}}" for name in names)
    for name, found in bills.items():
        rate = sum(bill.read for bill in found) / max(sum(bill.prompt for bill in found), 1)
        billed = sum(bill.billed for bill in found)
        values = (
            f"{rate * 100:.1f}",
            "" if name == schemes[0].name else str(sum(bill.compactions for bill in found)),
            str(sum(bill.breaks for bill in found)),
            f"{billed:,.0f}",
            f"{billed / ours:.2f}",
            f"{sum(bill.closed for bill in found) / len(found) * 100:.1f}",
            f"{sum(bill.recoverable for bill in found) / len(found) * 100:.1f}",
        )
        yield f"{name:<26}" + "".join(f"{value:>{len(of) + 3}}" for value, of in zip(values, names, strict=True))
    for name, found in bills.items():
        if name != OURS and _is_no_worse(found, bills[OURS]):
            yield f"not on the front: {name} costs less than {OURS} and has as much in it: it keeps less word for word"
    worst = max(bill.breaks - bill.compactions for bill in bills[OURS])
    yield f"{OURS}: {'at most one break' if worst <= 0 else 'more than one break'} for each compaction"


def _is_no_worse(others: Sequence[Bill], ours: Sequence[Bill]) -> bool:
    sums = [
        (
            -sum(bill.billed for bill in bills),
            sum(bill.closed for bill in bills),
            sum(bill.recoverable for bill in bills),
        )
        for bills in (others, ours)
    ]
    return all(other >= own for other, own in zip(*sums, strict=True))
