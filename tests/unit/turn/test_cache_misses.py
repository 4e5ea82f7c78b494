from __future__ import annotations

from copy import deepcopy

import pytest
from msgspec.structs import replace

from jp.conversation.entries import CycleEnd, Digests, JsonObject, RequestContext, Usage
from jp.conversation.turns import RequestUsage
from jp.provider.models import CacheFacts
from jp.turn.usage import CacheReport, Change, cache_report

LARGE = 5000


class Log:
    """Requests with the digests that a log keeps of them. Moments are seconds."""

    def __init__(self) -> None:
        self.requests: list[RequestUsage] = []
        self._messages: tuple[str, ...] = ()
        self._now = 0

    def sent(
        self,
        messages: str,
        *,
        turn: int = 0,
        read: int = 0,
        prompt: int = LARGE,
        wait: int = 10,
        model: str = "m",
        **parameters: object,
    ) -> Log:
        """A request that shows a message for each letter; before a `|`, letters stand for tools and system prompt."""
        prefix, _, messages = messages.rpartition("|")
        tools, system = prefix or "ts"
        kept = next(
            (i for i, (a, b) in enumerate(zip(messages, self._messages, strict=False)) if a != b),
            min(len(messages), len(self._messages)),
        )
        self._messages = tuple(messages)
        digests = Digests(tools=tools, system=system, kept=kept, messages=tuple(messages[kept:]))
        asked = self._now = self._now + wait
        self._now += 1
        end = CycleEnd(
            attempt=1,
            finish="stop",
            at=str(self._now),
            usage=Usage(input=prompt - read, cache_read=read, output=1) if prompt else Usage(),
            digests=digests if messages else Digests(),
        )
        options: JsonObject = parameters
        context = RequestContext(provider="p", model=model, renderer=1, parameters=options)
        self.requests.append(
            RequestUsage(turn=turn, cycle=0, end=end, context=context, asked_at=str(asked), answered=prompt > 0)
        )
        return self

    def died(self) -> Log:
        self.requests.append(RequestUsage(turn=0, cycle=0, end=None, context=None, answered=True))
        return self

    def report(self, facts: CacheFacts | None = None) -> CacheReport:
        def seconds_of(moment: str) -> float | None:
            return float(moment) if moment else None

        def facts_of(provider: str, name: str) -> CacheFacts:
            assert (provider, name) != ("", "")
            return facts or CacheFacts()

        return cache_report(self.requests, facts_of=facts_of, seconds_of=seconds_of)

    def changes(self, facts: CacheFacts | None = None) -> list[Change]:
        return [miss.change for miss in self.report(facts).misses]


@pytest.mark.parametrize(
    ("second", "change"),
    [
        ("abc", Change(section="nothing")),
        ("Ts|abc", Change(section="tools")),
        ("TS|abc", Change(section="tools")),
        ("tS|aXc", Change(section="system")),
        ("aXc", Change(section="message", message=1, turn=0)),
        ("X", Change(section="message", message=0, turn=0)),
        ("", Change(section="untold")),
    ],
)
def test_the_first_thing_that_changed_is_named(second: str, change: Change) -> None:
    assert Log().sent("ab").sent(second).changes() == [change]


def test_a_message_is_of_the_turn_in_which_it_was_said() -> None:
    log = Log().sent("q").sent("qar", turn=0, read=LARGE)  # a call and its response
    log.sent("qarfq", turn=1, read=LARGE)  # the answer of turn 0, and the next question
    owners = [
        deepcopy(log).sent(broken, turn=2).changes()[-1].turn for broken in ("Xarfqz", "qaXfqz", "qarXqz", "qarfXz")
    ]

    assert owners == [0, 0, 0, 1]


def test_a_message_that_was_moved_is_of_no_known_turn() -> None:
    log = Log().sent("abcd").sent("aX", turn=1, read=LARGE).sent("aY", turn=1)

    assert log.changes() == [Change(section="message", message=1, turn=None)]


def test_a_message_that_went_is_a_change() -> None:
    assert Log().sent("abc").sent("ab").changes() == [Change(section="message", message=2, turn=0)]


def test_other_parameters_are_named_where_nothing_else_changed() -> None:
    log = Log().sent("a", reasoning="low").sent("ab", reasoning="high", temperature=1)

    assert log.changes() == [Change(section="parameters", parameters=("reasoning", "temperature"))]


@pytest.mark.parametrize(("read", "misses"), [(0, 1), (LARGE // 2 - 1, 1), (LARGE // 2, 0), (LARGE, 0)])
def test_a_hit_is_half_of_what_could_be_read(read: int, misses: int) -> None:
    report = Log().sent("a").sent("ab", read=read, prompt=LARGE + read).report()

    assert [(miss.expected, miss.read) for miss in report.misses] == [(LARGE, read)] * misses


@pytest.mark.parametrize(
    "log",
    [
        Log().sent("a"),
        Log().sent("a", prompt=1024).sent("ab"),
        Log().sent("a", cache="off").sent("ab"),
        Log().sent("a").sent("ab", cache="off"),
        Log().sent("a").sent("ab", model="other"),
        Log().sent("a").sent("ab", prompt=0),
        Log().sent("a").sent("X", prompt=0, model="other").sent("ab"),
        Log().sent("a").died().sent("ab"),
    ],
    ids=["first", "small", "was off", "off", "other model", "failed", "other model failed", "died"],
)
def test_no_hit_is_expected(log: Log) -> None:
    assert log.report() == CacheReport(misses=(), lapsed=0)


def test_a_failed_request_in_between_is_looked_through() -> None:
    assert Log().sent("ab").sent("abc", prompt=0).sent("abcd").changes() == [Change(section="nothing")]
    assert Log().sent("ab").sent("Xb", prompt=0).sent("Xbc").changes() == [Change(section="message", message=0, turn=0)]


def test_a_small_prompt_that_was_cached_all_the_same_is_expected() -> None:
    log = Log().sent("a").sent("ab", prompt=900, read=900).sent("abc")

    assert log.changes(CacheFacts(minimum=LARGE)) == [Change(section="nothing")]


def test_a_cache_of_which_nobody_says_anything_has_to_show_itself() -> None:
    unsure = CacheFacts(is_certain=False)

    assert Log().sent("a").sent("ab").changes(unsure) == []
    assert Log().sent("a").sent("ab", read=LARGE).sent("abc").changes(unsure) == [Change(section="nothing")]


@pytest.mark.parametrize(
    ("wait", "cache", "misses", "lapsed"),
    [(300, "short", [300.0], 0), (301, "short", [], 1), (301, "long", [301.0], 0), (3601, "long", [], 1)],
)
def test_a_cache_forgets(wait: int, cache: str, misses: list[float], lapsed: int) -> None:
    report = Log().sent("a", cache=cache).sent("ab", cache=cache, wait=wait).report()

    assert [miss.seconds for miss in report.misses] == misses
    assert report.lapsed == lapsed


def test_a_clock_is_a_hint_only() -> None:
    (backwards,) = Log().sent("a").sent("ab", wait=-9).report().misses
    silent = Log().sent("a").sent("ab")
    silent.requests[1] = replace(silent.requests[1], asked_at="")

    assert backwards.seconds == 0
    assert [miss.seconds for miss in silent.report().misses] == [None]
