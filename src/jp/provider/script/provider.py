"""The `script` provider: a model that plays a scenario file, without a key or a network."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from copy import copy
from operator import is_
from pathlib import Path

import msgspec
from msgspec.structs import asdict, replace

from jp.context.estimate import estimate_tokens
from jp.conversation.entries import JsonObject, Usage
from jp.conversation.thread import Thread
from jp.errors import ConfigurationError
from jp.file_access import read_beginning
from jp.provider.base import (
    BlockEnd,
    Finished,
    Part,
    Provider,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStart,
    UsageReport,
    WireRequest,
)
from jp.provider.errors import ProviderError
from jp.provider.script.scenario import (
    MAX_BYTES,
    Body,
    Call,
    Failure,
    IncrementalBody,
    Message,
    Reply,
    Result,
    Scenario,
    Source,
    Text,
    When,
    count_tokens,
    read_scenario,
    sections_of,
)

_EXCERPT = 100
_PLACEHOLDER = re.compile(r"\{\{(user|result|handle|resources|uri|turn|tokens)\}\}")
_CUT = re.compile(r"\[\[cut:[0-9A-Za-z_-]+:([0-9a-f]+):")


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """The message to be answered: the user's text or, with `results`, those of tools.

    `user` and `sources` are of this turn. `end` is the number of messages up to here.
    """

    turn: int = 0
    user: str = ""
    sources: tuple[Source, ...] = ()
    results: tuple[Result, ...] = ()
    end: int = 0


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt and the texts that answer it so far; `answered` also where an answer has no text."""

    prompt: Prompt
    texts: tuple[str, ...] = ()
    answered: bool = False


class Cue(msgspec.Struct, frozen=True, kw_only=True):
    """A reply in its place: reply number `index` for exchange number `place`, going on after `begun`.

    `anchor` is the end of what came, with which the request asks to begin.
    """

    index: int
    reply: Reply
    place: int
    prompt: Prompt
    begun: str = ""
    anchor: str = ""


def _anchor(body: Body) -> str:
    """Return what the request to go on with a message asks to begin with; nothing where it is no such request."""
    for item in body.messages[-1].content if body.messages else ():
        if isinstance(item, Text) and item.synthetic and item.text.endswith("</anchor>"):
            return item.text.partition("\n<anchor>")[2].removesuffix("</anchor>")
    return ""


def _is_synthetic(item: object) -> bool:
    return isinstance(item, Text) and item.synthetic


def _prompts(message: Message) -> bool:
    return not all(_is_synthetic(item) for item in message.content)


def _answered(exchange: Exchange, message: Message) -> Exchange:
    texts = tuple(item.text for item in message.content if isinstance(item, Text) and not item.synthetic)
    answered = exchange.answered or _prompts(message)
    return replace(exchange, texts=exchange.texts + texts, answered=answered)


def _prompted(prompt: Prompt, message: Message, end: int) -> Prompt:
    if not _prompts(message):
        return prompt
    if message.turn != prompt.turn:
        prompt = Prompt(turn=message.turn)
    user, sources, results = prompt.user, list(prompt.sources), list(prompt.results)
    for item in message.content:
        match item:
            case Text(synthetic=False):
                user = item.text
                results.clear()
            case Source():
                sources.append(item)
            case Result():
                results.append(item)
            case _:
                pass
    return replace(prompt, user=user, sources=tuple(sources), results=tuple(results), end=end)


class Casting:
    """Hands out the replies of a scenario along one conversation, which may grow.

    Messages are read as prompts and answers, without summaries and other messages of jp.
    """

    def __init__(self, scenario: Scenario, body: Body) -> None:
        self._scenario = scenario
        self._read: Sequence[Message] = ()
        self._earlier = _Casting(scenario, body)
        self.go_on(body)

    def go_on(self, body: Body) -> None:
        """Take the next request; messages before its last one are not read again if they are the same objects."""
        final = body.messages[:-1]
        if len(self._read) > len(final) or not all(map(is_, self._read, final)):
            self._read, self._earlier = (), _Casting(self._scenario, body)
        self._earlier.body = body
        for end, message in enumerate(final[len(self._read) :], start=len(self._read) + 1):
            self._earlier.read(message, end)
        self._read = final
        self._now = self._earlier.fork()
        for message in body.messages[-1:]:
            self._now.read(message, len(body.messages))

    def cue(self) -> Cue | None:
        """Return the reply to the request; None if none matches."""
        return self._now.fork().cue()

    def explain(self) -> tuple[str, str]:
        """Return why no reply matches: the request, and the conditions of the replies."""
        now = self._now.fork()
        now.cue()
        return now.explain()


class _Casting:
    """The replies that were used up to an exchange, which is still open."""

    def __init__(self, scenario: Scenario, body: Body) -> None:
        self.body = body
        self._scenario = scenario
        self._place = 0
        self._current = Exchange(prompt=Prompt())
        self.used = [0] * len(scenario.reply)

    def fork(self) -> _Casting:
        """Return the same; what the fork reads is not read here."""
        found = copy(self)
        found.used = list(self.used)
        return found

    def read(self, message: Message, end: int) -> None:
        """Read the next message, up to which there are `end` messages."""
        if message.role == "assistant":
            self._current = _answered(self._current, message)
            return
        if self._current.answered and _prompts(message):
            self._replay(self._current, self._place, answers=max(1, len(self._current.texts)))
            self._place += 1
            self._current = Exchange(prompt=replace(self._current.prompt, results=()))
        self._current = replace(self._current, prompt=_prompted(self._current.prompt, message, end))

    def cue(self) -> Cue | None:
        current = self._current
        open_reply = self._replay(current, self._place, answers=len(current.texts))
        cue = self._next(current, self._place, "".join(current.texts), open_reply)
        return None if cue is None else replace(cue, anchor=_anchor(self.body))

    def explain(self) -> tuple[str, str]:
        """Return why no reply matches: the request, and the conditions of the replies."""
        wants = (wanted(reply, used) for reply, used in zip(self._scenario.reply, self.used, strict=True))
        listed = "; ".join(f"reply[{index}] {text}" for index, text in enumerate(wants))
        is_demanded = demands_call(self.body)
        way_out = "; one with `begun = true` answers the demand" if is_demanded and self._current.texts else ""
        question = asked(self._current, is_demanded=is_demanded)
        return f"in turn {self._current.prompt.turn} {question}", f"the replies want: {listed}{way_out}"

    def _replay(self, exchange: Exchange, place: int, *, answers: int) -> int | None:
        open_reply: int | None = None
        for count in range(answers):
            cue = self._next(exchange, place, "".join(exchange.texts[:count]), open_reply)
            if cue is not None and cue.index != open_reply:
                self.used[cue.index] += 1
                open_reply = open_reply if cue.reply.when.begun else cue.index
        return open_reply

    def _next(self, exchange: Exchange, place: int, begun: str, open_reply: int | None) -> Cue | None:
        for index, reply in enumerate(self._scenario.reply):
            used_up = reply.times is not None and self.used[index] >= reply.times and index != open_reply
            if used_up or not _fits(reply.when, exchange.prompt):
                continue
            cue = Cue(index=index, reply=reply, place=place, prompt=exchange.prompt, begun=begun)
            if self._can_go_on(cue):
                return replace(cue, begun="") if reply.when.begun else cue
        return None

    def _can_go_on(self, cue: Cue) -> bool:
        """Return whether a reply can continue the answer: only one with more than its text can."""
        reply = cue.reply
        if reply.when.begun or not cue.begun:
            return reply.when.begun == bool(cue.begun)
        text = filled(reply.text or "", cue.prompt, self.body)
        has_more = len(text) > len(cue.begun) or bool(reply.calls) or reply.error is not None
        return text.startswith(cue.begun) and has_more


def _fits(when: When, prompt: Prompt) -> bool:
    if when.turn is not None and when.turn != prompt.turn:
        return False
    if when.resource is not None and not any(_is_named(source, when.resource) for source in prompt.sources):
        return False
    if when.tool is None:
        return not (when.looks_at_text and prompt.results) and _text_fits(when, prompt.user)
    return any(_result_fits(when, result) for result in prompt.results)


def _result_fits(when: When, result: Result) -> bool:
    named = when.tool in {"*", result.name}
    return named and when.error in {None, result.is_error} and _text_fits(when, result.text)


def _text_fits(when: When, text: str) -> bool:
    return (
        (when.exact is None or when.exact == text)
        and (when.contains is None or when.contains in text)
        and (when.regex is None or re.search(when.regex, text) is not None)
    )


def _is_named(source: Source, name: str) -> bool:
    return name in {source.name, source.uri} or _path(source).endswith(f"/{name.removeprefix('/')}")


def _path(source: Source) -> str:
    from urllib.parse import unquote

    return "/" + unquote(source.uri)


def _short_name(source: Source) -> str:
    return source.name or _path(source).rstrip("/").rpartition("/")[2]


def filled(text: str, prompt: Prompt, body: Body, *, quote: Callable[[str], str] = str) -> str:
    """Return `text` with `{{user}}`, `{{result}}` and the other placeholders filled in.

    `quote` encodes a value for its position.
    """
    values: dict[str, Callable[[], str]] = {
        "user": lambda: prompt.user,
        "result": lambda: prompt.results[-1].text if prompt.results else "",
        "handle": lambda: _handle(prompt),
        "resources": lambda: ", ".join(_short_name(source) for source in prompt.sources),
        "uri": lambda: _attached_last(body, prompt.end),
        "turn": lambda: str(prompt.turn),
        "tokens": lambda: str(input_tokens(body, prompt.end)),
    }
    return _PLACEHOLDER.sub(lambda match: quote(values[match[1]]()), text)


def _handle(prompt: Prompt) -> str:
    """Return the handle of the content that was truncated from the last result."""
    cut = _CUT.search(prompt.results[-1].text) if prompt.results else None
    return "" if cut is None else cut[1]


def _attached_last(body: Body, messages: int) -> str:
    """Return the URI of the newest attachment of any turn."""
    items = (item for message in reversed(body.messages[:messages]) for item in reversed(message.content))
    return next((item.uri for item in items if isinstance(item, Source)), "")


def input_tokens(body: Body, messages: int) -> int:
    """About how many tokens a request is that ends with the given number of messages."""
    sections = sections_of(replace(body, messages=()))
    tokens = [message.tokens for message in body.messages[:messages]]
    return count_tokens((*sections.tools, *sections.system)) + sum(tokens)


def demands_call(body: Body) -> bool:
    """Return whether the model has to call a tool."""
    return bool(body.tools) and body.parameters.get("tool_choice", "auto") not in {"auto", "none"}


def asked(exchange: Exchange, *, is_demanded: bool) -> str:
    """Return a request in one line; `is_demanded` means that a tool call is required: text does not end an answer."""
    prompt = exchange.prompt
    if exchange.texts and is_demanded:
        return f"the answer {_excerpt(exchange.texts[-1])} called no tool, and the call was demanded again"
    if exchange.texts:
        return f"the answer {_excerpt(''.join(exchange.texts))} was cut off"
    if prompt.results:
        return " and ".join(f"tool {result.name!r} answers {_excerpt(result.text)}" for result in prompt.results)
    return f"the user says {_excerpt(prompt.user)}"


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…")


def wanted(reply: Reply, used: int) -> str:
    """Return the conditions of a reply in one line."""
    conditions = [
        f"{name} = {value!r}"
        for name, value in msgspec.structs.asdict(reply.when).items()
        if value is not None and (name, value) != ("begun", False)
    ]
    wants = ", ".join(conditions) or "anything"
    return wants if reply.times is None else f"{wants} (used {used} of {reply.times} times)"


def response_to(body: Body, cue: Cue, *, failing: bool) -> Iterator[Part]:
    """Yield the parts of the reply, from the anchor at which the answer was cut.

    `failing` ends them at the reply's error: before everything, or in its text, whose block stays open.
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
    calls_before = [message.calls for message in body.messages]
    made = sum(calls_before)
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
    """Return the path of the scenario of model `script/NAME`.

    A configured `scenario` is the file, whatever the name is; else a name with a slash or the suffix `.toml` is a path;
    else it is `.jp/scenarios/NAME.toml`. Relative paths start at `root`.
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
        raise ConfigurationError(message, hint="convert it first: `iconv -f latin1 -t utf-8`") from None


def create(name: str, *, root: Path, scenario: str | None) -> Provider:
    """Return the provider of model `script/NAME`; `scenario` is the value of `providers.llm.script.scenario`.

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
        self._growing = IncrementalBody()
        self._rendered: tuple[JsonObject, Body] | None = None
        self._casting: Casting | None = None

    def render(self, thread: Thread) -> WireRequest:
        """Return the thread as neutral JSON."""
        body = self._growing.build(thread)
        wire = body.wire()
        self._rendered = wire, body
        return WireRequest(path="", model=thread.model, body=wire, sections=sections_of(body))

    def locate_rejected(self, thread: Thread, error: ProviderError) -> tuple[str, ...]:
        """Return nothing: a scenario's reasoning has no opaque data that could be rejected."""
        return ()

    async def stream(self, request: WireRequest) -> AsyncGenerator[Part, None]:
        """Play the reply that fits."""
        from anyio import sleep

        known = self._rendered
        is_known = known is not None and known[0] is request.body
        body = known[1] if known is not None and is_known else msgspec.convert(request.body, Body)
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
        casting = self._casting = self._casting or Casting(self._scenario, body)
        casting.go_on(body)
        cue = casting.cue()
        if cue is not None:
            return cue
        asked, hint = casting.explain()
        message = f"no reply of scenario {self._source!r} fits: {asked}"
        raise ProviderError(message, kind="invalid_request", hint=hint)

    def _failure(self, cue: Cue) -> Failure | None:
        """Return the error of this attempt."""
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
