"""Which reply a request gets. Pure: decided by the request alone, so every process that renders it agrees.

A request holds what was asked and answered before, so how often a reply was used is counted by going through the
conversation once more, not remembered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from jp.context.estimate import estimate_tokens
from jp.provider.script.request import Body, Message, Result, Source, Text, sections_of
from jp.provider.script.scenario import Reply, Scenario, When

_EXCERPT = 100
_PLACEHOLDER = re.compile(r"\{\{(user|result|handle|resources|uri|turn|tokens)\}\}")
_CUT = re.compile(r"\[\[cut:[0-9A-Za-z_-]+:([0-9a-f]+):")


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be answered: the user's text, or where `results` are there those of tools.

    `user` and `sources` are of this turn. `end` is how many messages lead up to here.
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


def exchanges_of(messages: Iterable[Message]) -> list[Exchange]:
    """The conversation as prompts and answers. Summaries and other words of jp's own are neither."""
    exchanges = [Exchange(prompt=Prompt())]
    for end, message in enumerate(messages, start=1):
        if message.role == "assistant":
            exchanges[-1] = _answered(exchanges[-1], message)
            continue
        if exchanges[-1].answered and _prompts(message):
            exchanges.append(Exchange(prompt=replace(exchanges[-1].prompt, results=())))
        exchanges[-1] = replace(exchanges[-1], prompt=_prompted(exchanges[-1].prompt, message, end))
    return exchanges


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
    for item in message.content:
        match item:
            case Text(synthetic=False):
                prompt = replace(prompt, user=item.text, results=())
            case Source():
                prompt = replace(prompt, sources=(*prompt.sources, item))
            case Result():
                prompt = replace(prompt, results=(*prompt.results, item))
            case _:
                pass
    return replace(prompt, end=end)


class Casting:
    """Hands out the replies of a scenario along one conversation."""

    def __init__(self, scenario: Scenario, body: Body) -> None:
        self._scenario = scenario
        self._body = body
        *self._earlier, self._current = exchanges_of(body.messages)
        self._used = [0] * len(scenario.reply)

    def cue(self) -> Cue | None:
        """The reply to the request; None where none fits."""
        self._used = [0] * len(self._scenario.reply)
        for place, exchange in enumerate(self._earlier):
            self._replay(exchange, place, answers=max(1, len(exchange.texts)))
        current = self._current
        open_reply = self._replay(current, len(self._earlier), answers=len(current.texts))
        cue = self._next(current, len(self._earlier), "".join(current.texts), open_reply)
        return None if cue is None else replace(cue, anchor=_anchor(self._body))

    def explain(self) -> tuple[str, str]:
        """Why no reply fits: what is asked, and what the replies want."""
        wants = (wanted(reply, used) for reply, used in zip(self._scenario.reply, self._used, strict=True))
        listed = "; ".join(f"reply[{index}] {text}" for index, text in enumerate(wants))
        is_demanded = demands_call(self._body)
        way_out = "; one with `begun = true` answers the demand" if is_demanded and self._current.texts else ""
        question = asked(self._current, is_demanded=is_demanded)
        return f"in turn {self._current.prompt.turn} {question}", f"the replies want: {listed}{way_out}"

    def _replay(self, exchange: Exchange, place: int, *, answers: int) -> int | None:
        open_reply: int | None = None
        for count in range(answers):
            cue = self._next(exchange, place, "".join(exchange.texts[:count]), open_reply)
            if cue is not None and cue.index != open_reply:
                self._used[cue.index] += 1
                open_reply = open_reply if cue.reply.when.begun else cue.index
        return open_reply

    def _next(self, exchange: Exchange, place: int, begun: str, open_reply: int | None) -> Cue | None:
        for index, reply in enumerate(self._scenario.reply):
            used_up = reply.times is not None and self._used[index] >= reply.times and index != open_reply
            if used_up or not _fits(reply.when, exchange.prompt):
                continue
            cue = Cue(index=index, reply=reply, place=place, prompt=exchange.prompt, begun=begun)
            if self._can_go_on(cue):
                return replace(cue, begun="") if reply.when.begun else cue
        return None

    def _can_go_on(self, cue: Cue) -> bool:
        """Whether a reply takes the answer from where it stands: only one that has more than those words can."""
        reply = cue.reply
        if reply.when.begun or not cue.begun:
            return reply.when.begun == bool(cue.begun)
        text = filled(reply.text or "", cue.prompt, self._body)
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
    """`text` with `{{user}}`, `{{result}}` and the other placeholders filled in.

    `quote` makes a value fit for where it goes.
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
    """The handle of what was cut out of the last result."""
    cut = _CUT.search(prompt.results[-1].text) if prompt.results else None
    return "" if cut is None else cut[1]


def _attached_last(body: Body, messages: int) -> str:
    """The URI of what was attached last, at whatever turn."""
    items = (item for message in body.messages[:messages] for item in message.content)
    uris = [item.uri for item in items if isinstance(item, Source)]
    return uris[-1] if uris else ""


def input_tokens(body: Body, messages: int) -> int:
    """About how many tokens a request is that ends with the given number of messages."""
    sections = sections_of(replace(body, messages=body.messages[:messages]))
    texts = (*sections.tools, *sections.system, *(part for message in sections.messages for part in message))
    return sum(estimate_tokens(text.decode()) for text in texts)


def demands_call(body: Body) -> bool:
    """Whether the model has to call a tool."""
    return bool(body.tools) and body.parameters.get("tool_choice", "auto") not in {"auto", "none"}


def asked(exchange: Exchange, *, is_demanded: bool) -> str:
    """What a request asks, in one line. `is_demanded`: a call of a tool is, so words alone are no end of an answer."""
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
    """What a reply waits for, in one line."""
    conditions = [
        f"{name} = {value!r}"
        for name, value in msgspec.structs.asdict(reply.when).items()
        if value is not None and (name, value) != ("begun", False)
    ]
    wants = ", ".join(conditions) or "anything"
    return wants if reply.times is None else f"{wants} (used {used} of {reply.times} times)"
