from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from jp.attachment.base import AttachmentError, AttachmentHandler, Declaration, Resolution, ResolveContext, scheme_of
from jp.attachment.files import FileHandler
from jp.attachment.registry import (
    AttachmentRegistry,
    ResolvedAttachments,
    delivered_declarations,
    plan_resolution,
    resolve_all,
)
from jp.conversation.entries import AnyEntry, ChatRequest, ConfigDelta, TurnStart
from jp.conversation.resource import Resource


def declared(*texts: str) -> list[Declaration]:
    return [declaration(text, confined=True) for text in texts]


def typed(*texts: str) -> list[Declaration]:
    return [declaration(text, confined=False) for text in texts]


def declaration(text: str, *, confined: bool) -> Declaration:
    return Declaration(uri=text.removeprefix("!"), written=text, exclude=text.startswith("!"), confined=confined)


# What a turn resolves: configured, typed, delivered before → includes, excludes, recorded.
RULE: Mapping[str, tuple[str, str, str, str, str, str]] = {
    "a new conversation resolves everything": ("a b", "", "", "a b", "", "a b"),
    "a turn without anything new resolves nothing": ("a b", "", "a b", "", "", ""),
    "nothing declared, nothing typed": ("", "", "", "", "", ""),
    "what was declared later is resolved at the next turn": ("a b c", "", "a b", "c", "", "c"),
    "what is typed is resolved": ("a", "b", "a", "b", "", "b"),
    "what is typed again is resolved afresh": ("a", "a", "a", "a", "", "a"),
    "what is typed comes after what is configured": ("a b", "c", "", "a b c", "", "a b c"),
    "what is both configured and typed comes once": ("a b", "b a", "", "a b", "", "a b"),
    "what is typed twice comes once": ("", "a a", "", "a", "", "a"),
    "what is configured twice comes once": ("a a", "", "", "a", "", "a"),
    "a declaration that is gone stays delivered": ("", "", "a", "", "", ""),
    "a fork that copied no request resolves everything": ("a b", "", "", "a b", "", "a b"),
    "a fork resolves what its copied requests lack": ("a b", "", "a", "b", "", "b"),
    "configured excludes apply to what is configured": ("a !x", "", "", "a", "!x", "a !x"),
    "configured excludes apply to what is typed": ("a !x", "b", "a", "b", "!x", "b !x"),
    "typed excludes apply to what is configured": ("a", "!x", "", "a", "!x", "a !x"),
    "excludes are joined": ("a !x", "!y !x b", "", "a b", "!x !y", "a b !x !y"),
    "excludes alone resolve nothing": ("!x", "!y", "", "", "!x !y", ""),
    "an exclude does not count as delivered": ("a !x", "", "!x", "a", "!x", "a !x"),
}


@pytest.mark.parametrize("case", RULE)
def test_the_rule(case: str) -> None:
    configured, attached, delivered, includes, excludes, recorded = (text.split() for text in RULE[case])

    plan = plan_resolution(declared(*configured), typed(*attached), delivered=delivered)

    assert [include.text for include in plan.includes] == includes
    assert [exclude.text for exclude in plan.excludes] == excludes
    assert list(plan.declarations) == recorded


def test_what_is_typed_is_free_even_where_a_file_declares_it() -> None:
    plan = plan_resolution(declared("a", "b"), typed("a"), delivered=())

    assert [(include.text, include.confined) for include in plan.includes] == [("a", False), ("b", True)]


def test_what_requests_resolved_is_delivered() -> None:
    entries: list[AnyEntry] = [
        TurnStart(),
        ChatRequest(content="x", attachments=("file:a", "!file:b")),
        ConfigDelta(delta={"conversation": {"attachments": ["file:d"]}}),
        ChatRequest(content="y"),
        ChatRequest(content="z", attachments=("file:a", "file:c")),
    ]

    assert delivered_declarations(entries) == {"file:a", "file:c"}


# Resolving

Answer = Callable[[Declaration], Awaitable[Resolution]]


class StubHandler:
    """Gives what a test says; remembers with which excludes it was asked."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.excludes: list[Sequence[Declaration]] = []

    def canonical(self, uri: str, context: ResolveContext) -> str:
        return uri

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        self.excludes.append(excludes)
        return await self._answer(declaration)


class StubRegistry(AttachmentRegistry):
    def __init__(self, **handlers: AttachmentHandler) -> None:
        super().__init__()
        self._stubs = handlers

    def handler(self, uri: str) -> AttachmentHandler:
        return self._stubs[scheme_of(uri)]


def resolved(registry: AttachmentRegistry, context: ResolveContext, *texts: str) -> ResolvedAttachments:
    async def resolve() -> ResolvedAttachments:
        with anyio.fail_after(5):
            return await resolve_all(plan_resolution([], typed(*texts), delivered=()), registry, context)

    return anyio.run(resolve)


def resource(uri: str, text: str = "") -> Resource:
    return Resource(uri=uri, text=text)


def test_the_order_is_that_of_the_declarations_whoever_is_first(context: ResolveContext) -> None:
    done = anyio.Event()

    async def slow(declaration: Declaration) -> Resolution:
        if declaration.uri == "a:1":
            await done.wait()
        return Resolution(resources=(resource(declaration.uri),), notices=(declaration.uri,))

    async def fast(declaration: Declaration) -> Resolution:
        done.set()
        return Resolution(resources=(resource(declaration.uri),), notices=(declaration.uri,))

    registry = StubRegistry(a=StubHandler(slow), b=StubHandler(fast))
    result = resolved(registry, context, "a:1", "b:1", "a:2")

    assert [each.uri for each in result.resources] == ["a:1", "b:1", "a:2"]
    assert result.notices == result.declarations == ("a:1", "b:1", "a:2")


def test_a_resource_of_several_declarations_is_delivered_once(context: ResolveContext) -> None:
    async def answer(declaration: Declaration) -> Resolution:
        return Resolution(resources=(resource("x:shared", declaration.uri), resource(declaration.uri)))

    result = resolved(StubRegistry(a=StubHandler(answer)), context, "a:1", "a:2")

    assert [(each.uri, each.text) for each in result.resources] == [("x:shared", "a:1"), ("a:1", ""), ("a:2", "")]


def test_every_handler_is_given_every_exclude(context: ResolveContext) -> None:
    async def answer(_: Declaration) -> Resolution:
        return Resolution(resources=())

    handlers = {"a": StubHandler(answer), "b": StubHandler(answer)}
    resolved(StubRegistry(**handlers), context, "a:1", "!b:x", "b:1")

    for handler in handlers.values():
        assert [exclude.text for exclude in handler.excludes[0]] == ["!b:x"]


def test_what_is_typed_wins_over_an_earlier_exclude_of_just_that(context: ResolveContext) -> None:
    stub = StubHandler(lambda _: _nothing())
    registry = StubRegistry(a=stub)

    async def excludes_of(earlier: str, *now: str) -> list[str]:
        await resolve_all(plan_resolution(declared(*earlier.split()), typed(*now), delivered=()), registry, context)
        return [exclude.text for exclude in stub.excludes[-1]]

    assert anyio.run(excludes_of, "!a:1", "a:1") == []
    assert anyio.run(excludes_of, "!a:1/part", "a:1") == ["!a:1/part"]
    assert anyio.run(excludes_of, "!a:1", "a:1", "!a:1") == ["!a:1"]
    assert anyio.run(excludes_of, "!a:1 a:1") == ["!a:1"]


async def _nothing() -> Resolution:
    return Resolution(resources=())


def test_of_several_failures_the_first_in_order_is_told(context: ResolveContext) -> None:
    failed = anyio.Event()

    async def fail(declaration: Declaration) -> Resolution:
        if declaration.uri == "a:2":
            failed.set()
        else:
            await failed.wait()
            await anyio.lowlevel.checkpoint()
        raise AttachmentError(declaration.written)

    with pytest.raises(AttachmentError, match=r"^a:1$"):
        resolved(StubRegistry(a=StubHandler(fail)), context, "a:1", "a:2", "a:3")


def test_a_failure_stops_what_comes_after_it(context: ResolveContext) -> None:
    async def fail(declaration: Declaration) -> Resolution:
        if declaration.uri != "a:1":
            await anyio.sleep_forever()
        raise AttachmentError(declaration.written)

    with pytest.raises(AttachmentError, match=r"^a:1$"):
        resolved(StubRegistry(a=StubHandler(fail)), context, "a:1", "a:2")


def test_a_scheme_that_is_not_known_is_a_failure_like_others(context: ResolveContext) -> None:
    with pytest.raises(AttachmentError, match="'nosuch', which is not known"):
        resolved(AttachmentRegistry(), context, "nosuch:x", "file:missing")


def test_nothing_to_resolve_is_nothing(context: ResolveContext) -> None:
    assert resolved(AttachmentRegistry(), context) == ResolvedAttachments()


class TellingHandler(FileHandler):
    """Says how far it is."""

    async def resolve(
        self, declaration: Declaration, context: ResolveContext, *, excludes: Sequence[Declaration] = ()
    ) -> Resolution:
        context.tell(f"half of {declaration.uri}")
        return Resolution(resources=())


def test_what_is_read_is_shown_for_as_long_as_it_is_read(context: ResolveContext) -> None:
    told: list[str] = []

    @contextmanager
    def progress(text: str) -> Generator[Callable[[str], None]]:
        told.append(text)
        yield told.append
        told.append("end")

    handlers = {scheme: TellingHandler() for scheme in ("a", "cmd", "gh", "http")}
    sources = ("a:x", "cmd:git log", "gh:pull/1", "http://ann:sesame@h.example/p")
    for text in sources:
        plan = plan_resolution((), typed(text), delivered=())
        anyio.run(partial(resolve_all, plan, StubRegistry(**handlers), context, progress=progress))

    assert told[::3] == ["reading a:x", "running git log", "fetching gh:pull/1", "fetching http://h.example/p"]
    assert told[1::3] == [f"half of {text}" for text in sources]
    assert told[2::3] == ["end"] * 4
