"""Read a scenario file, and render a thread as what its steps are matched with."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby
from typing import Annotated, Literal, assert_never, get_args

import msgspec
from msgspec.structs import replace

from jp.context.estimate import estimate_tokens
from jp.conversation.entries import JsonObject
from jp.conversation.resource import (
    AudioBlock,
    BinaryContent,
    Block,
    Carrier,
    ImageBlock,
    Resource,
    ResourceBlock,
    ResourceLink,
    StoredContent,
    TextBlock,
    TextContent,
    content_of,
    formatted_of,
)
from jp.conversation.thread import (
    AssistantData,
    AssistantReasoning,
    AssistantText,
    Thread,
    ToolCall,
    ToolDefinition,
    ToolResult,
    UserResource,
    UserText,
    ViewEvent,
    count_unchanged,
    set_parameters,
)
from jp.errors import ConfigurationError
from jp.provider.base import Sections, SentMessage
from jp.provider.errors import ErrorKind, ProviderError
from jp.suggestions import closest_names

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Stop = Literal["stop", "tools", "length", "refused"]

MAX_BYTES = 4 * 1024 * 1024
"""A larger file is no scenario."""


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions of a reply: all that are given have to match.

    `exact`, `contains` and `regex` match the user's last text or, with `tool` (a name, or `*`), the result of that
    tool. `error` says whether that result is one. `resource` names an attachment of this turn. `begun` matches requests
    to continue an answer that was cut.
    """

    exact: str | None = None
    contains: str | None = None
    regex: str | None = None
    tool: str | None = None
    error: bool | None = None
    resource: str | None = None
    turn: Count | None = None
    begun: bool = False

    @property
    def looks_at_text(self) -> bool:
        """True if a condition is about text."""
        return any(condition is not None for condition in (self.exact, self.contains, self.regex))


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call of a tool. Text as `arguments` is sent as it is, so that it need not be JSON."""

    name: str
    arguments: JsonObject | str = {}


class Tokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens that the reply reports."""

    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    reasoning: Count = 0


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request fails: before anything came, or where `after` is given when that many characters of text came.

    `attempts` is how many attempts of one process fail at the same place of a conversation; None: all.
    """

    kind: ErrorKind
    message: str = ""
    after: Count | None = None
    attempts: Positive | None = None
    retry_after: Seconds | None = None
    status: Count | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer, and when it is given. It comes as reasoning, text, calls.

    `times` bounds how often it is used in a conversation. `chunk` is how many characters come at once, `wait_ms`
    the time before anything comes, `delay_ms` the time before each piece.
    """

    when: When = When()
    times: Positive | None = None
    reasoning: str = ""
    text: str | None = None
    calls: tuple[Call, ...] = ()
    usage: Tokens | None = None
    chunk: Positive = 16
    wait_ms: Count = 0
    delay_ms: Count = 0
    stop: Stop | None = None
    detail: str = ""
    error: Failure | None = None


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replies; of those that fit a request, the first one is given."""

    description: str = ""
    reply: tuple[Reply, ...] = ()


_TABLES: dict[str, type[msgspec.Struct]] = {
    "": Scenario,
    "reply": Reply,
    "when": When,
    "calls": Call,
    "usage": Tokens,
    "error": Failure,
}
_CHOICES: dict[str, tuple[str, ...]] = {"kind": get_args(ErrorKind), "stop": get_args(Stop)}
_INVALID = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<place>.*)`)?", re.DOTALL)
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(?P<key>.*)`", re.DOTALL)
_BAD_CHOICE = re.compile(r"Invalid enum value '(?P<value>.*)'", re.DOTALL)


def read_scenario(text: str, *, source: str) -> Scenario:
    """Read a scenario from text; `source` is its name in errors.

    Raises:
        ConfigurationError: it is not TOML, or not a scenario; names place and key.
    """
    import tomllib

    from jp.config.toml import load_toml

    try:
        scenario = msgspec.convert(load_toml(text), Scenario)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"scenario {source!r} is not TOML: {error}", hint=_SHAPE) from None
    except msgspec.ValidationError as error:
        raise _explained(str(error), source) from None
    except RecursionError:
        raise ConfigurationError(f"scenario {source!r} is nested too deeply", hint=_FORMAT) from None
    if not scenario.reply:
        raise ConfigurationError(f"scenario {source!r} has no reply", hint="give it at least one `[[reply]]`")
    for index, reply in enumerate(scenario.reply):
        problem = _problem(reply)
        if problem:
            raise ConfigurationError(f"scenario {source!r}: reply[{index}]: {problem}", hint=_FORMAT)
    return scenario


_FORMAT = "replies count from 0; docs/script-provider.md says what they may hold"
_SHAPE = 'a scenario is a list of `[[reply]]` tables, such as `text = "Hello"`'


def _problem(reply: Reply) -> str:
    says_something = reply.text is not None or reply.reasoning or reply.calls
    problems = {
        'it says nothing; for an empty answer give `text = ""`': not (says_something or reply.error or reply.stop),
        '`stop = "tools"` needs `calls`': reply.stop == "tools" and not reply.calls,
        '`calls` and `stop = "stop"` exclude each other': reply.stop == "stop" and bool(reply.calls),
        "`when.error` needs `when.tool`": reply.when.error is not None and reply.when.tool is None,
    }
    found = next((problem for problem, is_there in problems.items() if is_there), "")
    return found or _regex_problem(reply.when.regex)


def _regex_problem(regex: str | None) -> str:
    if regex is None:
        return ""
    try:
        re.compile(regex)
    except re.error as error:
        return f"when.regex {regex!r} is not a regular expression: {error}"
    return ""


def _explained(message: str, source: str) -> ConfigurationError:
    """Return the decoder's error in words for the author of the file."""
    invalid = _INVALID.fullmatch(message)
    what, place = (message, "") if invalid is None else (invalid["what"], invalid["place"] or "")
    last = re.sub(r"\[.*?\]", "", place).rpartition(".")[2]
    where = f"scenario {source!r}: {place}: " if place else f"scenario {source!r}: "
    unknown = _UNKNOWN_KEY.fullmatch(what)
    if unknown is not None:
        known = _TABLES[last].__struct_fields__
        return ConfigurationError(f"{where}unknown key {unknown['key']!r}", hint=_nearest(unknown["key"], known))
    bad = _BAD_CHOICE.fullmatch(what)
    if bad is not None:
        return ConfigurationError(f"{where}{bad['value']!r} is no {last}", hint=_nearest(bad["value"], _CHOICES[last]))
    return ConfigurationError(where + what[:1].lower() + what[1:].replace("`", ""), hint=_FORMAT)


def _nearest(word: str, known: tuple[str, ...]) -> str:
    near = closest_names(word, known)
    return f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"


Role = Literal["user", "assistant"]


class Item(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """A piece of a message."""


class Text(Item, frozen=True, kw_only=True, omit_defaults=True, tag="text"):
    """Words. `synthetic`: of jp, for the user or the model."""

    text: str
    synthetic: bool = False


class Reasoning(Item, frozen=True, kw_only=True, omit_defaults=True, tag="reasoning"):
    """The model's reasoning."""

    text: str


class Data(Item, frozen=True, kw_only=True, omit_defaults=True, tag="data"):
    """Structured output, as JSON text."""

    text: str


class Source(Item, frozen=True, kw_only=True, omit_defaults=True, tag="resource"):
    """A resource as the model sees it: text, or base64 in `data`; without both, a link."""

    uri: str
    name: str | None = None
    mime_type: str | None = msgspec.field(default=None, name="mimeType")
    text: str | None = None
    data: bytes | None = None


class Media(Item, frozen=True, kw_only=True, omit_defaults=True, tag="media"):
    """A picture or sound without an identity."""

    mime_type: str = msgspec.field(name="mimeType")
    data: bytes


class ModelCall(Item, frozen=True, kw_only=True, omit_defaults=True, tag="tool_call"):
    """A call of the model."""

    call_id: str
    name: str
    arguments: JsonObject | str


class Result(Item, frozen=True, kw_only=True, omit_defaults=True, tag="tool_result"):
    """The answer to a call."""

    call_id: str
    name: str
    content: tuple[Text | Source | Media, ...] = ()
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text of the result."""
        return "\n".join(item.text or "" for item in self.content if not isinstance(item, Media))


AnyItem = Text | Reasoning | Data | Source | Media | ModelCall | Result


class Message(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The content of one side in one turn, up to the other side's next. What follows from it is kept with it."""

    role: Role
    turn: int
    content: tuple[AnyItem, ...]

    @cached_property
    def wire(self) -> JsonObject:
        """It as a part of the request."""
        return msgspec.to_builtins(self)

    @cached_property
    def sent(self) -> SentMessage:
        """It as a prompt cache compares it."""
        return SentMessage((_canonical([self.role, self.turn]), *map(_canonical, self.content)))

    @cached_property
    def tokens(self) -> int:
        """About how many tokens it has."""
        return count_tokens(self.sent)

    @cached_property
    def calls(self) -> int:
        """The number of calls in it."""
        return sum(isinstance(item, ModelCall) for item in self.content)


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A request."""

    model: str
    system: tuple[str, ...]
    tools: tuple[ToolDefinition, ...]
    messages: tuple[Message, ...]
    parameters: JsonObject
    schema: JsonObject | None = None

    def wire(self) -> JsonObject:
        """Return the request in plain JSON."""
        return msgspec.to_builtins(replace(self, messages=())) | {
            "messages": [message.wire for message in self.messages]
        }


def body_of(thread: Thread) -> Body:
    """Return the request for `thread`.

    Raises:
        ProviderError: content of the thread was not loaded.
    """
    return IncrementalBody().build(thread)


class IncrementalBody:
    """Builds the requests of a thread that grows: messages that have not changed stay the same objects."""

    def __init__(self) -> None:
        self._events: Sequence[ViewEvent] = ()
        self._messages: list[Message] = []
        self._ends: list[int] = []  # positions behind the events of each message

    def build(self, thread: Thread) -> Body:
        """Return what `body_of` returns.

        Raises:
            ProviderError: content of the thread was not loaded.
        """
        events = thread.events
        # A message can grow by what follows it.
        kept = bisect_left(self._ends, count_unchanged(self._events, events))
        messages, ends = self._messages[:kept], self._ends[:kept]
        for (role, turn), group in groupby(events[ends[-1] if ends else 0 :], key=_place):
            message = Message(role=role, turn=turn, content=tuple(map(_item, group)))
            before = self._messages[len(messages)] if len(messages) < len(self._messages) else message
            messages.append(before if before == message else message)
            ends.append((ends[-1] if ends else 0) + len(message.content))
        self._events, self._messages, self._ends = events, messages, ends
        return Body(
            model=thread.model,
            system=thread.system,
            tools=thread.tools,
            messages=tuple(messages),
            parameters=set_parameters(thread.parameters),
            schema=thread.schema,
        )


def sections_of(body: Body) -> Sections:
    """Return the sections of the request that a prompt cache compares."""
    return Sections(
        tools=tuple(_canonical(tool) for tool in body.tools),
        system=tuple(_canonical(part) for part in body.system),
        messages=tuple([message.sent for message in body.messages]),
    )


def count_tokens(texts: Iterable[bytes]) -> int:
    """Return about how many tokens `texts` have."""
    return sum(estimate_tokens(text.decode()) for text in texts)


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _place(event: ViewEvent) -> tuple[Role, int]:
    return _role(event), event.turn


def _role(event: ViewEvent) -> Role:
    match event:
        case UserText() | UserResource() | ToolResult():
            return "user"
        case AssistantText() | AssistantReasoning() | AssistantData() | ToolCall():
            return "assistant"
        case _:
            assert_never(event)


def _item(event: ViewEvent) -> AnyItem:
    match event:
        case UserText() | AssistantText():
            return Text(text=event.text, synthetic=event.synthetic)
        case AssistantReasoning():
            return Reasoning(text=event.text)
        case AssistantData():
            return Data(text=event.text)
        case UserResource():
            return _source(event.resource)
        case ToolCall():
            return ModelCall(call_id=event.call_id, name=event.name, arguments=event.arguments)
        case ToolResult():
            content = tuple(_block(block) for block in event.content)
            return Result(call_id=event.call_id, name=event.name, content=content, is_error=event.is_error)
        case _:
            assert_never(event)


def _block(block: Block) -> Text | Source | Media:
    match block:
        case TextBlock():
            content = _content(block)
            return Text(text=content.text if isinstance(content, TextContent) else "")
        case ResourceBlock():
            return _source(block.resource)
        case ResourceLink():
            return Source(uri=block.uri, name=block.name, mime_type=block.mime_type)
        case ImageBlock() | AudioBlock():
            content = _content(block)
            if block.formatted is not None:
                return Text(text=block.formatted)
            return Media(mime_type=block.mime_type, data=content.data if isinstance(content, BinaryContent) else b"")
        case _:
            assert_never(block)


def _source(resource: Resource) -> Source:
    content = _content(resource)
    return Source(
        uri=resource.uri,
        name=resource.name,
        mime_type=resource.mime_type,
        text=content.text if isinstance(content, TextContent) else None,
        data=content.data if isinstance(content, BinaryContent) else None,
    )


def _content(carrier: Carrier) -> TextContent | BinaryContent:
    formatted = formatted_of(carrier)
    if formatted is not None:
        return TextContent(formatted)
    content = content_of(carrier)
    if isinstance(content, StoredContent):
        raise ProviderError(f"content {content.sha256!r} was not loaded", kind="other")
    return content
