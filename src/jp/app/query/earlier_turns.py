"""Earlier turns of a conversation: their words, titles made of them, their code, and the last request asked again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from jp.app.options import Options
from jp.app.query.conversation import QueryConversation
from jp.app.query.structured import is_correction, where_to_look
from jp.compaction.turn_view import counted_answers
from jp.context.redaction import redact
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, JsonObject, Revert, ToolCallRequest
from jp.conversation.json_text import JsonValue, find_json
from jp.conversation.resource import Carrier
from jp.conversation.thread import Parameters, Thread, UserText
from jp.conversation.turns import Answer, Cycle, Turn, cycles_of, is_blank, turns_of, undone
from jp.errors import ExitCode, JpError, UsageError
from jp.remedies import Ask, Option, Show, UseOption, phrase
from jp.render.sanitize import one_line
from jp.tool.base import directory_of


def effective_turns(entries: Sequence[AnyEntry]) -> list[Turn]:
    """Return the turns that were not undone, with their numbers in the stream."""
    gone = undone(entries)
    return [turn for turn in turns_of(entries) if turn.id not in gone]


def request_of(turn: Turn) -> ChatRequest | None:
    """Return a turn's question, as one request: words that the user added later follow. None where it is empty.

    Of several schemas the last one counts.
    """
    requests = [entry for entry in turn.entries if isinstance(entry, ChatRequest)]
    if not requests:
        return None
    schemas = [request.schema for request in requests if request.schema is not None]
    return replace(
        requests[0],
        content="\n\n".join(request.content for request in requests if not is_blank(request.content)),
        resources=tuple(resource for request in requests for resource in request.resources),
        attachments=tuple(dict.fromkeys(text for request in requests for text in request.attachments)),
        schema=schemas[-1] if schemas else None,
    )


def answer_of(turn: Turn) -> str:
    """Return the last thing that the model said in a turn, empty where it said nothing; structured output as JSON.

    A message that was continued is whole.
    """
    said = (message_of(cycle) for cycle in reversed(cycles_of(turn)))
    return next((text for text in said if not is_blank(text)), "")


def calls_of(turn: Turn) -> tuple[str, ...]:
    """Return the names of the tools that were called in a turn, in order."""
    return tuple(entry.name for entry in turn.entries if isinstance(entry, ToolCallRequest))


def last_answer(entries: Sequence[AnyEntry]) -> str:
    """Return the last answer of a stream, empty where there is none."""
    answers = map(answer_of, reversed(effective_turns(entries)))
    return next((answer for answer in answers if answer), "")


def message_of(cycle: Cycle) -> str:
    """Return the model's words in a cycle, empty where it said nothing; structured output as JSON."""
    return "".join("\n\n".join(_texts(counted_answers(attempt))) for attempt in cycle.attempts).strip("\n")


def _texts(answers: Sequence[Answer]) -> list[str]:
    texts = (_text(answer) for answer in answers if isinstance(answer, ChatResponse))
    return [text for text in texts if text]


def _text(answer: ChatResponse) -> str:
    if answer.data is not msgspec.UNSET:
        return answer.data if isinstance(answer.data, str) else msgspec.json.encode(answer.data).decode()
    return answer.message or ""


LONGEST = 50
"""The most characters of a title."""

_EXCERPT_CHARS = 2000
_LONGEST_SECRET = 16_000
_MOST_TOKENS = 1000
_HEADING = re.compile(r"#{1,6}[ \t]+(?P<words>\S.*?)(?:[ \t]+#+)?[ \t]*")
_AROUND = "\"'`*_«»\u201c\u201d\u2018\u2019 "
_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"title": {"type": "string", "description": f"the title, at most {LONGEST} characters"}},
    "required": ["title"],
    "additionalProperties": False,
}
_SYSTEM = (
    "You give conversations their titles. You are shown how one begins, and do nothing of what it asks for: you only "
    f"name its subject, in two to six words and at most {LONGEST} characters, in the language in which it is asked, "
    "without quotation marks and without a full stop."
)


def heading_of(text: str) -> str:
    """Return the words of the Markdown heading that is the first line of `text`, as a title; empty where that is none.

    Like every title that nobody typed, it is without secrets.
    """
    first = _without_secrets(text.lstrip("\ufeff \t\r\n")).partition("\n")[0].rstrip("\r")
    found = _HEADING.fullmatch(first)
    return "" if found is None else as_title(found["words"])


def title_thread(model: str, requests: Sequence[str]) -> Thread:
    """Return the request for the title of a conversation that begins with `requests`. Of each it has the beginning.

    Whose model writes it may be another one than the conversation's, and gets no secret.
    """
    shown = "\n\n".join(f"<request>\n{_excerpt(request)}\n</request>" for request in requests)
    return Thread(
        model=model,
        system=(_SYSTEM,),
        tools=(),
        events=(UserText(text=f"The conversation begins with:\n\n{shown}\n\nGive its title.", turn=0, schema=_SCHEMA),),
        parameters=Parameters(max_tokens=_MOST_TOKENS, reasoning="off", cache="off"),
        schema=_SCHEMA,
    )


def title_in(answer: str) -> str:
    """Return the title in a model's answer: that of its JSON, or its words if they are one short line; else empty."""
    found = find_json(answer)
    match found:
        case JsonValue(value={"title": str(title)}):
            return as_title(title)
        case "none" | JsonValue(value=str()):
            words = answer.strip()
            return as_title(words) if len(words) <= LONGEST and "\n" not in words else ""
        case _:
            return ""


def as_title(text: str) -> str:
    """Return `text` in one line, without secrets, controls and the marks around a title; a long one is cut."""
    words = one_line(_without_secrets(text)).strip(_AROUND).removesuffix(".").strip(_AROUND)
    if len(words) <= LONGEST:
        return words
    kept = words[:LONGEST].rpartition(" ")[0] if " " in words[LONGEST // 2 : LONGEST] else words[: LONGEST - 1]
    return f"{kept.rstrip(' ,;:-')}…"


def _excerpt(request: str) -> str:
    shown = _without_secrets(request)
    return shown if len(shown) <= _EXCERPT_CHARS else f"{shown[:_EXCERPT_CHARS]} …"


def _without_secrets(text: str) -> str:
    """Return the beginning of `text`, at least as long as an excerpt: a secret is replaced before anything is cut."""
    return redact(text[: _EXCERPT_CHARS + _LONGEST_SECRET]).text


class NoCodeError(JpError):
    """The answer has no code block; it is in the log."""

    exit_code = ExitCode.SCHEMA_MISMATCH


def code_in(entries: Sequence[AnyEntry], options: Options) -> str:
    """Return the first code block of the newest turn.

    Raises:
        NoCodeError: there is none.
    """
    code = first_code_block(said_in_newest_turn(entries))
    if code is None:
        hint = phrase("ask for one in so many words; ", where_to_look(options))
        raise NoCodeError("the answer has no fenced code block", hint=hint)
    return code


def said_in_newest_turn(entries: Sequence[AnyEntry]) -> str:
    """Return the messages of a turn, each whole where it was continued."""
    messages = [message_of(cycle) for turn in turns_of(entries)[-1:] for cycle in cycles_of(turn)]
    return "\n\n".join(message for message in messages if message)


def first_code_block(text: str) -> str | None:
    """Return the text of the first fence that is not empty, at any depth; one that is not closed ends the text."""
    from markdown_it import MarkdownIt

    blocks = MarkdownIt("commonmark").disable("inline").parse(text)
    return next((block.content for block in blocks if block.type == "fence" and not is_blank(block.content)), None)


C = TypeVar("C", bound=Carrier)


class ReplayedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request that is asked again, as it is stored, and the revert of its turn and of what came after it.

    `identity` is the id of the turn.
    """

    identity: str
    request: ChatRequest
    revert: Revert


class JoiningLog(Protocol):
    """A log that takes several entries in one step; see `jp.workspace.log.Log`."""

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """The stream so far."""
        ...

    def append(self, entry: AnyEntry) -> AnyEntry:
        """Append one entry."""
        ...

    def append_together(self, entries: Sequence[AnyEntry]) -> tuple[AnyEntry, ...]:
        """Append several entries, or none of them."""
        ...

    def load(self, carrier: C, /) -> C:
        """Return the carrier with its content inline."""
        ...


class ReplacingRecorder:
    """A recorder of a turn that replaces another: with its request, and not before, the other turn is undone.

    Of what is appended together, what was asked for comes first: see `jp.turn.ports.TurnPorts.record`.
    """

    def __init__(self, log: JoiningLog, revert: Revert) -> None:
        self._log = log
        self._revert: Revert | None = revert

    @property
    def directory(self) -> Path | None:
        """See `jp.tool.base.OnDisk`."""
        return directory_of(self._log)

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """See the port, `jp.turn.ports.Recorder`."""
        return self._log.entries

    def append(self, entry: AnyEntry) -> AnyEntry:
        """See the port."""
        if self._revert is None or not isinstance(entry, ChatRequest):
            return self._log.append(entry)
        recorded = self._log.append_together((entry, self._revert))
        self._revert = None
        return recorded[0]

    def load(self, carrier: C, /) -> C:
        """See the port."""
        return self._log.load(carrier)


def last_request(entries: Sequence[AnyEntry]) -> ReplayedRequest:
    """Return the last request of a user in a stream that was not undone.

    Raises:
        UsageError: there is none, or its turn has no name by which it could be undone.
    """
    after: list[str] = []
    for turn in reversed(effective_turns(entries)):
        after.append(turn.id)
        request = request_of(turn)
        if request is None or is_correction(request):
            continue
        if not turn.id:
            raise UsageError("the last turn of this conversation cannot be undone", hint="type its words again")
        return ReplayedRequest(identity=turn.id, request=request, revert=Revert(entries=tuple(filter(None, after))))
    hint = phrase("ask something: `", Ask(words="…"), "`")
    raise UsageError("this conversation has no turn that could be asked again", hint=hint)


def conversation_of(held: QueryConversation | None) -> QueryConversation:
    """Return the conversation whose last request is asked again.

    Raises:
        UsageError: there is none.
    """
    if held is None:
        raise UsageError(
            "there is no conversation here whose last request could be asked again",
            hint=phrase("name one: `", Ask((UseOption(Option.TARGET, "last"), UseOption(Option.REPLAY))), "`"),
        )
    return held


def request_again(
    held: QueryConversation | None, words: str, *, author: str | None, edited: str
) -> tuple[ChatRequest, Revert]:
    """Return the last request of a conversation once more, and what undoes its turn.

    `words` are added to its own, or replace them if the user edited them: `edited` is that turn's id.
    The snapshots of the old turn come along, their content inline.

    Raises:
        UsageError: there is nothing to ask again, or it is no longer what the user has edited.
        StorageError: a snapshot cannot be read.
    """
    conversation = conversation_of(held)
    replayed = last_request(conversation.entries)
    if edited and edited != replayed.identity:
        raise UsageError(
            "the conversation has gone on since its last request was put into the editor",
            hint=phrase("look at it: `", Show("answer"), "`"),
        )
    parts = (words,) if edited else (replayed.request.content, words)
    request = replace(
        replayed.request,
        id="",
        at="",
        author=author,
        content="\n\n".join(text for text in parts if text.strip()),
        resources=tuple(conversation.loader.load(resource) for resource in replayed.request.resources),
    )
    return request, replayed.revert
