"""The `script` provider: a model that plays a scenario file, without a key or a network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import asdict

from jp.context.estimate import estimate_tokens
from jp.conversation.entries import Usage
from jp.conversation.thread import Thread
from jp.errors import ConfigurationError
from jp.provider.base import (
    BlockEnd,
    Finished,
    Part,
    Provider,
    ReasoningDelta,
    Sections,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
    WireRequest,
)
from jp.provider.errors import ProviderError
from jp.provider.script.matching import Casting, Cue, filled, input_tokens
from jp.provider.script.request import Body, ModelCall, body_of, sections_of
from jp.provider.script.scenario import MAX_BYTES, Call, Failure, Reply, Scenario, read_scenario
from jp.reading import read_beginning


def response_to(body: Body, cue: Cue, *, failing: bool) -> Iterator[Part]:
    """The parts of the reply, from the anchor where the answer was cut off.

    `failing` ends them where the reply's error strikes: before everything, or in its text, whose block stays open.
    """
    reply = cue.reply
    text = filled(reply.text or "", cue.prompt, body)
    text = cue.anchor + text[len(cue.begun) :]
    reasoning = "" if cue.begun else filled(reply.reasoning, cue.prompt, body)
    calls = [_arguments(call, cue, body) for call in reply.calls]
    after = reply.error.after if failing and reply.error is not None else None
    if failing and after is None:
        return
    if reasoning:
        yield from (ReasoningDelta(0, piece) for piece in _pieces(reasoning, reply))
        yield BlockEnd(0)
    yield from (
        TextDelta(1, piece) for piece in _pieces(text if after is None else text[: len(cue.anchor) + after], reply)
    )
    if failing:
        return
    if text:
        yield BlockEnd(1)
    yield from _calls(body, reply, calls)
    yield UsageReport(_usage(body, reply, reasoning=reasoning, answer="".join((text, *calls))))
    yield Finished(reply.stop or ("tools" if calls else "stop"), reply.detail)


def _calls(body: Body, reply: Reply, calls: list[str]) -> Iterator[Part]:
    made = sum(isinstance(item, ModelCall) for message in body.messages for item in message.content)
    for number, (call, arguments) in enumerate(zip(reply.calls, calls, strict=True), start=1):
        index = number + 1
        yield ToolCallStart(index, f"call-{made + number}", call.name)
        yield from (ToolArgumentsDelta(index, piece) for piece in _pieces(arguments, reply))
        yield BlockEnd(index)


def _pieces(text: str, reply: Reply) -> Iterator[str]:
    for start in range(0, len(text), reply.chunk):
        yield text[start : start + reply.chunk]


def _arguments(call: Call, cue: Cue, body: Body) -> str:
    if isinstance(call.arguments, str):
        return filled(call.arguments, cue.prompt, body)
    text = msgspec.json.encode(call.arguments).decode()
    return filled(text, cue.prompt, body, quote=_inside_a_json_string)


def _inside_a_json_string(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


def _usage(body: Body, reply: Reply, *, reasoning: str, answer: str) -> Usage:
    if reply.usage is not None:
        return Usage(**asdict(reply.usage))
    thought = estimate_tokens(reasoning)
    return Usage(
        input=input_tokens(body, len(body.messages)), output=thought + estimate_tokens(answer), reasoning=thought
    )


RENDERER = 1

_PLACE = "`script/NAME` plays `.jp/scenarios/NAME.toml`, or set `providers.llm.script.scenario`."


def scenario_path(name: str, *, root: Path, scenario: str | None) -> Path:
    """Where the scenario of model `script/NAME` lies.

    A configured `scenario` is the file, whatever the name; else a name with a slash or that ends in `.toml` is a path
    itself; else it is `.jp/scenarios/NAME.toml`. Relative paths start at `root`.
    """
    if scenario is not None:
        return root / scenario
    if "/" in name or name.endswith(".toml"):
        return root / name
    return root / ".jp" / "scenarios" / f"{name}.toml"


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ConfigurationError: the file is missing, too large, not TOML, or not a scenario; it names file, place and key.
    """
    return read_scenario(_read(path), source=str(path))


def _read(path: Path) -> str:
    try:
        data = read_beginning(path, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ConfigurationError(f"scenario {str(path)!r} is larger than {MAX_BYTES:,} bytes", hint=_PLACE)
        return data.decode()
    except IsADirectoryError:
        raise ConfigurationError(f"scenario {str(path)!r} is not a file", hint=_PLACE) from None
    except FileNotFoundError:
        raise ConfigurationError(f"there is no scenario {str(path)!r}", hint=_PLACE) from None
    except OSError as error:
        raise ConfigurationError(f"cannot read scenario {str(path)!r}: {error.strerror}", hint=_PLACE) from None
    except UnicodeDecodeError as error:
        message = f"scenario {str(path)!r} is not UTF-8: byte {error.start:,} does not fit"
        raise ConfigurationError(message, hint="Convert it first: `iconv -f latin1 -t utf-8`.") from None


def create(name: str, *, root: Path, scenario: str | None) -> Provider:
    """The provider for model `script/NAME`; `scenario` is what `providers.llm.script.scenario` says.

    Raises:
        ConfigurationError: the scenario is missing or not valid.
    """
    path = scenario_path(name, root=root, scenario=scenario)
    return ScriptProvider(load_scenario(path), source=str(path))


class ScriptProvider:
    """Plays a scenario. The one thing it remembers is how often an attempt failed because an `error` told it to."""

    id = "script"
    renderer = RENDERER

    def __init__(self, scenario: Scenario, *, source: str) -> None:
        self._scenario = scenario
        self._source = source
        self._failures: dict[tuple[int, int], int] = {}

    def render(self, thread: Thread) -> WireRequest:
        """The thread as neutral JSON."""
        return WireRequest(path="", model=thread.model, body=msgspec.to_builtins(body_of(thread)))

    def sections(self, request: WireRequest) -> Sections:
        """See the port."""
        return sections_of(msgspec.convert(request.body, Body))

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Nothing: a scenario's reasoning has nothing opaque that could be rejected."""
        return ()

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        """Play the reply that fits."""
        from anyio import sleep

        body = msgspec.convert(request.body, Body)
        cue = self._cue(body)
        failure = self._failure(cue)
        await sleep(cue.reply.wait_ms / 1000)
        for part in response_to(body, cue, failing=failure is not None):
            if not isinstance(part, (ToolCallStart, BlockEnd, UsageReport, Finished)):
                await sleep(cue.reply.delay_ms / 1000)
            yield part
        if failure is not None:
            raise _error(failure, cue)

    def _cue(self, body: Body) -> Cue:
        casting = Casting(self._scenario, body)
        cue = casting.cue()
        if cue is not None:
            return cue
        asked, hint = casting.explain()
        message = f"no reply of scenario {self._source!r} fits: {asked}"
        raise ProviderError(message, kind="invalid_request", hint=hint)

    def _failure(self, cue: Cue) -> Failure | None:
        """The error that this attempt runs into."""
        error = cue.reply.error
        if error is None:
            return None
        place = (cue.index, cue.place)
        failed = self._failures.get(place, 0)
        if error.attempts is not None and failed >= error.attempts:
            return None
        self._failures[place] = failed + 1
        return error


def _error(failure: Failure, cue: Cue) -> ProviderError:
    return ProviderError(
        failure.message or f"reply[{cue.index}] of the scenario fails: {failure.kind}",
        kind=failure.kind,
        retry_after=failure.retry_after,
        status=failure.status,
    )
