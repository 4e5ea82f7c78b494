"""An answer that is cut anywhere, however often, on every wire: its text comes once and whole, or the turn fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anthropic_wire
import chat_wire
import google_wire
import openai_wire
from doubles import EchoTools, FakeClock, MemoryRecorder, Screen, messages
from jp.compaction.status_lines import AFTER_MESSAGE, PlainStatusFormatter
from jp.conversation.entries import ChatRequest
from jp.provider import http
from jp.provider.errors import ProviderError
from jp.provider.transport import HttpRequest, Limits, RequestLog
from jp.turn.loop import TurnLoop, TurnOutcome
from jp.turn.machine import Limits as TurnLimits
from jp.turn.machine import RetryPolicy
from jp.turn.ports import TurnPorts
from jp.turn.request import RequestSettings
from provider_at import provider_at

Behavior = Literal["obedient", "starts over", "other words"]
Told = tuple[bytes, str]
"""An event on the wire, and how much of the text it adds."""


def anthropic(pieces: Sequence[str]) -> Iterator[Told]:
    events = [anthropic_wire.start(), *anthropic_wire.text(0, *pieces), *anthropic_wire.ending()]
    for event in events:
        said: dict[str, Any] = dict(event)
        yield anthropic_wire.sse(event), said.get("delta", {}).get("text", "")


def openai(pieces: Sequence[str]) -> Iterator[Told]:
    said = openai_wire.message("".join(pieces))
    grown = [openai_wire.delta("output_text", 0, piece, content_index=0) for piece in pieces]
    events = [*openai_wire.start(), openai_wire.added(0, said), *grown, openai_wire.done(0, said)]
    for event in (*events, openai_wire.ending("completed", said)):
        yield anthropic_wire.sse(event), str(event.get("delta", ""))


def chat(pieces: Sequence[str]) -> Iterator[Told]:
    for piece, delta in zip(pieces, chat_wire.says(*pieces), strict=True):
        yield chat_wire.stream(chat_wire.chunk(delta), done=False), piece
    yield chat_wire.stream(chat_wire.chunk(finish="stop"), done=False), ""
    yield chat_wire.stream(chat_wire.usage()), ""


def google(pieces: Sequence[str]) -> Iterator[Told]:
    for piece in pieces:
        yield google_wire.body(google_wire.chunk(google_wire.part(piece))), piece
    yield google_wire.body(google_wire.chunk(finish="STOP")), ""


def ollama(pieces: Sequence[str]) -> Iterator[Told]:
    for piece in pieces:
        yield msgspec.json.encode({"message": {"role": "assistant", "content": piece}}) + b"\n", piece
    last = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    yield msgspec.json.encode(last) + b"\n", ""


WIRES: dict[str, tuple[str, Callable[[Sequence[str]], Iterator[Told]], str]] = {
    "anthropic": ("claude-haiku-4-5", anthropic, "text/event-stream"),
    "openai": ("gpt-5", openai, "text/event-stream"),
    "openrouter": ("openai/gpt-5", chat, "text/event-stream"),
    "google": ("gemini-2.5-flash", google, "text/event-stream"),
    "ollama": ("m", ollama, "application/x-ndjson"),
}


class Model:
    """A server whose model has `text` to say, and whose connections break as `cuts` say: after so many events."""

    def __init__(self, wire: str, text: str, *, size: int, cuts: Sequence[int], behavior: Behavior) -> None:
        self.text = text
        self.requests: list[str] = []
        self._events, self._kind = WIRES[wire][1], WIRES[wire][2]
        self._size = size
        self._cuts = list(cuts)
        self._behavior = behavior
        self.delivered = 0

    def _says(self, asked: str) -> str:
        anchor = asked.partition("\n<anchor>")[2].removesuffix("</anchor>")
        if asked == AFTER_MESSAGE:
            return "END" if self._behavior == "obedient" else self.text
        if not anchor:
            return self.text
        so_far = self.text[: self.delivered]
        assert so_far.endswith(anchor)
        if self._behavior == "other words":
            return f"~{anchor}"
        return anchor + self.text[self.delivered :] if self._behavior == "obedient" else self.text

    def answer(self, body: bytes) -> Iterator[bytes]:
        asked = _last_words(msgspec.json.decode(body))
        self.requests.append(asked)
        said = self._says(asked)
        pieces = [said[start : start + self._size] for start in range(0, len(said), self._size)] or [""]
        events = list(self._events(pieces))
        count = self._cuts.pop(0) % (len(events) + 1) if self._cuts else len(events)
        self._deliver(asked, said, "".join(text for _, text in events[:count]))
        yield from (event for event, _ in events[:count])
        if count < len(events):
            raise ProviderError("the connection broke off", kind="cut")

    def _deliver(self, asked: str, said: str, come: str) -> None:
        """Keep how much of the text has come: white space that nothing follows is no piece of it."""
        if asked == AFTER_MESSAGE or (said is not self.text and self._behavior == "other words"):
            return
        skipped = len(self.text) - len(said)
        end = skipped + len(come)
        if self.text[self.delivered : end].strip():
            self.delivered = end

    @asynccontextmanager
    async def post(self, request: HttpRequest, limits: Limits) -> AsyncGenerator[_Response, None]:
        del limits
        yield _Response(self.answer(request.body), self._kind)


class _Response:
    status = 200

    def __init__(self, events: Iterator[bytes], kind: str) -> None:
        self._events = events
        self.headers = {"content-type": kind}
        self.log = RequestLog("POST", HttpRequest(url="https://example.org", headers=()))

    async def chunks(self) -> AsyncIterator[bytes]:
        for event in self._events:
            yield event


def _last_words(body: Mapping[str, Any]) -> str:
    """The last text in a request, on whatever wire."""
    texts: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, Mapping):
            for name in ("text", "content", "parts"):
                if name in value:
                    look(value[name])
        else:
            for each in value:
                look(each)

    look(next(body[name] for name in ("messages", "input", "contents") if name in body))
    return texts[-1]


class Outcome:
    """What came of a turn: on the screen, in the log, and as its outcome."""

    def __init__(self, wire: str, model: Model, *, with_tools: bool) -> None:
        tools = EchoTools()
        self.screen, self.recorder = Screen(), MemoryRecorder()
        name = WIRES[wire][0]
        provider = provider_at("http://127.0.0.1:9", provider=wire, model=name)
        ports = TurnPorts(
            provider=provider,
            recorder=self.recorder,
            renderer=self.screen,
            tools=tools,
            clock=FakeClock(),
            status_formatter=PlainStatusFormatter(),
        )
        definitions = tools.definitions if with_tools else ()
        settings = RequestSettings(provider=wire, model=name, renderer=1, tools=definitions)
        turn = TurnLoop(ports, settings, limits=TurnLimits(), retry=RetryPolicy(max_retries=6))
        original, http.post = http.post, model.post
        try:
            self.outcome: TurnOutcome = anyio.run(turn.run, ChatRequest(content="Hi"))
        finally:
            http.post = original

    @property
    def logged(self) -> str:
        return "".join(messages(self.recorder.entries))


def repeated(unit: str, count: int, end: str) -> str:
    return unit * count + end


UNITS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<~"), min_size=1, max_size=9)
TEXTS = st.one_of(
    st.text(alphabet="ab 13\n", min_size=1, max_size=80),
    st.builds(repeated, UNITS, st.integers(1, 30), UNITS),
    st.lists(st.sampled_from(["the ", "cut ", "falls ", "here.\n\n", "1337 ", "a", "é"]), min_size=1, max_size=60).map(
        "".join
    ),
).filter(lambda text: bool(text.strip()))
BEHAVIORS: tuple[Behavior, ...] = ("obedient", "starts over")
CUTS = st.lists(st.integers(0, 200), min_size=1, max_size=5)
SIZES = st.integers(1, 5)


@pytest.mark.parametrize("wire", WIRES)
@given(text=TEXTS, size=SIZES, cuts=CUTS, chosen=st.tuples(st.sampled_from(BEHAVIORS), st.booleans()))
def test_an_answer_that_is_cut_comes_once_and_whole(
    wire: str, *, text: str, size: int, cuts: list[int], chosen: tuple[Behavior, bool]
) -> None:
    behavior, with_tools = chosen
    model = Model(wire, text, size=size, cuts=cuts, behavior=behavior)

    told = Outcome(wire, model, with_tools=with_tools)

    assert (told.outcome.ending, told.screen.shown, told.logged) == ("answered", text, text)
    assert len(model.requests) <= len(cuts) + 1


@pytest.mark.parametrize("behavior", ["obedient", "starts over"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("text", ["1337", "1111", "1 1 ", "\n13\n", "The answer is 1337."])
def test_a_short_answer_may_be_cut_at_every_place(wire: str, text: str, behavior: Behavior) -> None:
    for cut in range(len(text) + 8):
        model = Model(wire, text, size=1, cuts=[cut], behavior=behavior)

        told = Outcome(wire, model, with_tools=False)

        assert (told.outcome.ending, told.screen.shown, told.logged) == ("answered", text, text)


@pytest.mark.parametrize("wire", WIRES)
@given(text=TEXTS, size=SIZES, cut=st.integers(0, 200))
def test_other_words_are_a_failure_and_are_not_shown(wire: str, text: str, size: int, cut: int) -> None:
    model = Model(wire, text, size=size, cuts=[cut], behavior="other words")

    told = Outcome(wire, model, with_tools=False)

    assert told.logged == told.screen.shown
    if told.outcome.ending == "failed":
        assert told.outcome.error is not None
        assert told.outcome.error.exit_code == 5
        assert text.startswith(told.logged)
    else:
        assert (told.outcome.ending, told.logged) == ("answered", text)
