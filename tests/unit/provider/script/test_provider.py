from __future__ import annotations

import sys
from pathlib import Path

import anyio
import msgspec
import pytest

from jp.conversation.thread import AssistantText, Thread, UserText, ViewEvent
from jp.errors import ConfigurationError
from jp.provider.base import BlockEnd, Finished, Part, Provider, TextDelta
from jp.provider.errors import ProviderError
from jp.provider.script.provider import ScriptProvider, create, scenario_path
from jp.provider.script.scenario import Failure, Reply, Scenario, When
from running import run_jp


def thread(*events: ViewEvent) -> Thread:
    return Thread(model="script/demo", system=(), tools=(), events=events or (UserText(text="Hi", turn=0),))


def scripted(*replies: Reply) -> ScriptProvider:
    return ScriptProvider(Scenario(reply=replies), source="demo.toml")


async def collected(provider: Provider, request: Thread, parts: list[Part]) -> None:
    async for part in provider.stream(provider.render(request)):
        parts.append(part)  # noqa: PERF401  what came before an error counts


def played(provider: Provider, request: Thread | None = None) -> tuple[list[Part], ProviderError | None]:
    parts: list[Part] = []
    try:
        anyio.run(collected, provider, request or thread(), parts)
    except ProviderError as error:
        return parts, error
    return parts, None


def text_of(parts: list[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextDelta))


@pytest.mark.parametrize(
    ("name", "scenario", "expected"),
    [
        ("demo", None, "/w/.jp/scenarios/demo.toml"),
        ("demo.toml", None, "/w/demo.toml"),
        ("tests/demo", None, "/w/tests/demo"),
        ("/elsewhere/demo.toml", None, "/elsewhere/demo.toml"),
        ("demo", "scripts/one.toml", "/w/scripts/one.toml"),
        ("tests/demo.toml", "/elsewhere/one.toml", "/elsewhere/one.toml"),
    ],
)
def test_a_scenario_is_found_by_setting_path_or_name(name: str, scenario: str | None, expected: str) -> None:
    assert scenario_path(name, root=Path("/w"), scenario=scenario) == Path(expected)


def test_a_scenario_is_played_by_its_name(tmp_path: Path) -> None:
    (tmp_path / ".jp" / "scenarios").mkdir(parents=True)
    (tmp_path / ".jp" / "scenarios" / "demo.toml").write_text("[[reply]]\ntext = 'Hello'\n", encoding="utf-8")

    provider = create("demo", root=tmp_path, scenario=None)
    parts, error = played(provider)

    assert provider.id == "script"
    assert text_of(parts) == "Hello"
    assert parts[-1] == Finished("stop")
    assert error is None


def test_a_missing_scenario_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no scenario"):
        create("demo", root=tmp_path, scenario=None)


def test_a_request_is_the_same_bytes_for_the_same_thread() -> None:
    provider = scripted(Reply(text="x"))

    request = provider.render(thread())

    assert msgspec.json.encode(request.body) == msgspec.json.encode(provider.render(thread()).body)
    assert request.sections.messages == ((b'["user",0]', b'{"text":"Hi","type":"text"}'),)


def test_a_request_that_no_reply_fits_fails_and_says_what_was_asked() -> None:
    parts, error = played(scripted(Reply(when=When(contains="zzz"), text="x")))

    assert parts == []
    assert error is not None
    assert error.message == "no reply of scenario 'demo.toml' fits: in turn 0 the user says 'Hi'"
    assert error.hint == "the replies want: reply[0] contains = 'zzz'"
    assert (error.kind, error.is_retryable) == ("invalid_request", False)


def test_an_error_comes_as_it_was_written() -> None:
    failure = Failure(kind="rate_limit", message="slow down", retry_after=2.5, status=429)

    parts, error = played(scripted(Reply(error=failure)))

    assert parts == []
    assert error is not None
    assert (error.kind, error.message, error.retry_after, error.status) == ("rate_limit", "slow down", 2.5, 429)


def test_an_error_without_a_message_names_the_reply_and_the_kind() -> None:
    _, error = played(scripted(Reply(when=When(turn=9), text="x"), Reply(error=Failure(kind="other"))))

    assert error is not None
    assert error.message == "reply[1] of the scenario fails: other"


def test_an_error_without_attempts_strikes_each_time() -> None:
    provider = scripted(Reply(text="Hello", error=Failure(kind="transient")))

    assert [played(provider)[1] is None for _ in range(3)] == [False, False, False]


def test_an_error_strikes_as_many_attempts_as_it_says_and_then_no_more() -> None:
    provider = scripted(Reply(text="Hello", error=Failure(kind="transient", attempts=2)))

    assert [text_of(played(provider)[0]) for _ in range(4)] == ["", "", "Hello", "Hello"]


def test_attempts_are_counted_for_each_place_in_a_conversation() -> None:
    provider = scripted(Reply(text="Hello", error=Failure(kind="transient", attempts=1)))
    later = thread(UserText(text="Hi", turn=0), AssistantText(text="Hello", turn=0), UserText(text="Hi", turn=1))

    assert [played(provider, request)[1] is None for request in (thread(), later, thread(), later)] == [
        False,
        False,
        True,
        True,
    ]


def test_a_stream_that_is_cut_leaves_its_block_open_and_goes_on_from_there() -> None:
    provider = scripted(Reply(text="Hello world", error=Failure(kind="cut", after=6, attempts=1)))

    parts, error = played(provider)
    rest, _ = played(provider, thread(UserText(text="Hi", turn=0), AssistantText(text="Hello ", turn=0)))

    assert text_of(parts) == "Hello "
    assert not any(isinstance(part, BlockEnd) for part in parts)
    assert error is not None
    assert error.kind == "cut"
    assert text_of(rest) == "world"


def test_attempts_are_counted_for_each_reply() -> None:
    provider = scripted(
        Reply(when=When(begun=True), text="Part two", error=Failure(kind="cut", attempts=1)),
        Reply(text="Part one", error=Failure(kind="cut", after=4, attempts=1)),
    )
    cut = thread(UserText(text="Hi", turn=0), AssistantText(text="Part", turn=0))

    assert [text_of(played(provider, request)[0]) for request in (thread(), cut, cut)] == ["Part", "", "Part two"]


def test_waits_are_as_long_as_the_reply_says(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(anyio, "sleep", wait)

    played(scripted(Reply(text="Hello", chunk=2, wait_ms=500, delay_ms=20)))

    assert waits == [0.5, 0.02, 0.02, 0.02]


def test_a_reply_can_be_cancelled_at_each_piece() -> None:
    provider = scripted(Reply(text="Hello world", chunk=1))
    parts: list[Part] = []

    async def leave_after_three() -> None:
        with anyio.CancelScope() as scope:
            async for part in provider.stream(provider.render(thread())):
                parts.append(part)
                if len(parts) == 3:
                    scope.cancel()

    anyio.run(leave_after_three)

    assert text_of(parts) == "Hel"


def test_importing_the_provider_loads_nothing_heavy() -> None:
    code = (
        "import sys, jp.provider.script.provider\n"
        "print(sorted({'anyio', 'asyncio', 'tomllib', 'difflib', 'httpx2', 'rich'} & set(sys.modules)))"
    )

    assert run_jp(program=(sys.executable, "-c", code)) == (0, "[]\n", "")
