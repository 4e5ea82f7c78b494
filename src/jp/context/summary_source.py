"""The input of a summarizer: bounded originals, the user's words, and a ledger of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec

from jp.context.estimate import estimate_tokens
from jp.context.markers import Artifacts, Cutter
from jp.context.redaction import cut_plainly, excerpt, without_secrets
from jp.context.summary_schema import shortened
from jp.context.types import Answered, Block, Facts, Message, ReasoningBlock, StoredBlock, TextBlock, has_content

SPOKEN_LIMIT = 24_000
MESSAGE_LIMIT = 4_000


class Group(msgspec.Struct, frozen=True, gc=False):
    """The messages from `start` up to, not including, `end`: a call's message with its results, or any other one."""

    start: int
    end: int


def groups_of(messages: Sequence[Message]) -> list[Group]:
    """Return the groups of `messages` in order, in one walk."""
    groups: list[Group] = []
    start, count = 0, len(messages)
    while start < count:
        end = start + 1
        if messages[start].calls or messages[start].role == "tool":
            while end < count and messages[end].role == "tool":
                end += 1
        groups.append(Group(start, end))
        start = end
    return groups


def is_real_user(message: Message) -> bool:
    """Return whether the person speaks: an exchange begins."""
    return message.role == "user" and _is_real(message)


def is_visible_assistant(message: Message) -> bool:
    """Return whether the model says something to the person."""
    return message.role == "assistant" and _is_real(message)


def _is_real(message: Message) -> bool:
    return message.meta.kind == "real" and not message.meta.hidden and has_content(message)


class Spoken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Each message of the person once, oldest first.

    `first` is what they began with. `active` is their newest, which is being worked on. `later` are those between.
    """

    first: str = ""
    later: tuple[str, ...] = ()
    active: str = ""

    def all(self) -> tuple[str, ...]:
        """Return all of them, oldest first."""
        return tuple(text for text in (self.first, *self.later, self.active) if text)


class SpokenFold(msgspec.Struct, frozen=True, kw_only=True):
    """`evicted` are those for which there is no room any more, oldest first."""

    spoken: Spoken
    evicted: tuple[str, ...] = ()


def speaks(message: Message) -> bool:
    """Return whether the person says something in a message: a request, or an answer to a tool's question."""
    return is_real_user(message) or bool(message.meta.said)


def spoken_in(messages: Sequence[Message], cutter: Cutter) -> tuple[str, ...]:
    """Return what the person says in `messages`, without secrets, exact up to 4,000 characters each.

    Attachments are named. Answers to tools' questions follow the request that the tools work on.
    """
    said: list[str] = []
    for message in messages:
        if is_real_user(message):
            said.append(excerpt(_whole(message, cutter), MESSAGE_LIMIT, cutter))
        elif message.meta.said:
            answers = "\n".join(_answer(answered, cutter) for answered in message.meta.said)
            said[-1:] = [f"{said[-1]}\n\n{answers}" if said else answers]
    return tuple(said)


def fold_spoken(
    said: Sequence[str], *, begins: bool = True, is_active: bool = True, limit: int = SPOKEN_LIMIT
) -> SpokenFold:
    """Return the part of `said`, oldest first, that stays: the newest within `limit`, always the first and the active.

    `begins`: the first of them began the conversation. `is_active`: the last is the person's newest.
    """
    left = list(said)
    active = left.pop() if left and is_active else ""
    first = left.pop(0) if left and begins else ""
    room = limit - len(active) - len(first)
    kept = 0
    for text in reversed(left):
        room -= len(text)
        if room < 0:
            break
        kept += 1
    gone = len(left) - kept
    return SpokenFold(spoken=Spoken(first=first, later=tuple(left[gone:]), active=active), evicted=tuple(left[:gone]))


def _answer(answered: Answered, cutter: Cutter) -> str:
    question = excerpt(answered.question, MESSAGE_LIMIT, cutter)
    return f"(asked: {question}) {excerpt(answered.answer, MESSAGE_LIMIT, cutter)}"


def _whole(message: Message, cutter: Cutter) -> str:
    if isinstance(message.content, str):
        return message.content
    said = (block.text for block in message.content if isinstance(block, TextBlock) and not block.uri)
    attached = (_name(block, cutter) for block in message.content)
    return "\n\n".join(filter(None, (*said, *attached)))


def _name(block: Block, cutter: Cutter) -> str:
    """Return one line that names an attached `block`; empty if it was not attached."""
    match block:
        case StoredBlock(sha256=sha256, size=size):
            return _attached(block.mime_type or "content", block.uri, size, cutter.artifacts.handle(sha256))
        case TextBlock(text=text, uri=uri) if uri:
            size = len(text.encode("utf-8", "surrogatepass"))
            return _attached("text", uri, size, cutter.artifacts.keep(text))
        case TextBlock() | ReasoningBlock():
            return ""
        case _:
            assert_never(block)


def _attached(kind: str, uri: str, size: int, handle: str) -> str:
    name = f" {uri}" if uri else ""
    return f"[attached: {kind}{name}, {size} bytes, recall {handle}]"


MOST_FILES = 80
MOST_COMMANDS = 100
LONGEST_COMMAND = 200
LONGEST_OUTCOME = 240
LONGEST_PATH = 240

READING = frozenset({"read"})
CHANGING = frozenset({"write", "edit", "patch", "delete", "move"})
RUNNING = frozenset({"terminal", "test"})
"""Values of `facts.kind` for each sort of tool. Other kinds add nothing to a ledger."""

_CLOSED_PIPE = 141


class _Arguments(msgspec.Struct, frozen=True):
    """The argument with the command, in the calls of tools that run one."""

    command: str | tuple[str, ...] = ""
    cmd: str | tuple[str, ...] = ""
    script: str = ""
    code: str = ""


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A command as it was given, and how it ended."""

    command: str
    outcome: str = ""


class Ledger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The newest of each, in the order in which they were last touched or run."""

    modified: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()


def ledger_of(messages: Sequence[Message], known: dict[str, str] | None = None) -> Ledger:
    """Return the actions of the tools in `messages`, by their `facts`; their output is not read.

    `known` is the cache of `jp.context.redaction.redacted`.
    """
    known = {} if known is None else known
    read: list[str] = []
    modified: list[str] = []
    commands: list[tuple[str, Message, Facts]] = []
    for arguments, message, facts in _results(messages):
        if facts.kind in RUNNING:
            commands.append((arguments, message, facts))
        elif facts.path and not message.is_error:
            path = shortened(without_secrets(facts.path, known), LONGEST_PATH)
            if facts.kind in CHANGING:
                modified.append(path)
            elif facts.kind in READING:
                read.append(path)
    newest = tuple(
        Command(command=command_in(arguments, known), outcome=_outcome(message, facts))
        for arguments, message, facts in commands[-MOST_COMMANDS:]
    )
    return _bounded(Ledger(modified=tuple(modified), read=tuple(read), commands=newest))


def command_in(arguments: str, known: dict[str, str] | None = None) -> str:
    """Return the command in the `arguments` of a call, redacted and shortened; the arguments if there is no command.

    `known` is the cache of `jp.context.redaction.redacted`.
    """
    try:
        found = msgspec.json.decode(arguments, type=_Arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        found = _Arguments()
    command = found.command or found.cmd or found.script or found.code or arguments
    text = command if isinstance(command, str) else " ".join(command)
    return shortened(without_secrets(text, known), LONGEST_COMMAND)


def runs_command(arguments: Mapping[str, object] | str) -> bool:
    """Return whether a call with these `arguments` has something run."""
    if isinstance(arguments, str):
        return False
    return any(isinstance(arguments.get(name), str | list) and arguments.get(name) for name in ("command", "cmd"))


def _results(messages: Sequence[Message]) -> Iterator[tuple[str, Message, Facts]]:
    """Yield each result that has facts, with the arguments of its call."""
    for group in groups_of(messages):
        calls = {call.id: call.arguments for call in messages[group.start].calls}
        for message in messages[group.start : group.end]:
            if message.role == "tool" and message.meta.facts is not None:
                yield calls.get(message.call_id, ""), message, message.meta.facts


def _outcome(message: Message, facts: Facts) -> str:
    """Return how a command ended. One that wrote to a closed pipe succeeded."""
    if facts.exit_code in {0, _CLOSED_PIPE}:
        return "succeeded"
    failed = f"exit {facts.exit_code}" if facts.exit_code is not None else "failed" if message.is_error else "ended"
    said = without_secrets(facts.first_error) if facts.first_error else ""
    return shortened(f"{failed}: {said}" if said else failed, LONGEST_OUTCOME)


def _bounded(ledger: Ledger) -> Ledger:
    modified = _newest(ledger.modified)
    known = frozenset(modified)
    read = _newest([path for path in ledger.read if path not in known])
    return Ledger(modified=modified, read=read, commands=ledger.commands[-MOST_COMMANDS:])


def _newest(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the last `MOST_FILES` of `paths`, each at its last place."""
    found = dict.fromkeys(reversed(paths))
    return tuple(reversed(list(found)[:MOST_FILES]))


SAID_LIMIT = 6_000
RESULT_LIMIT = 6_000
ARGUMENTS_LIMIT = 1_500

_SQUEEZES = (1, 3, 10, 30)
"""By what the limits are divided, one after the other, until everything fits."""

_OMITTED = "[{count} messages omitted here]"
_HEAD_PERCENT = 45


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A text that the model is shown, whole: who or what says it, and how much of it may stand.

    `is_said`: the person's own words.
    """

    label: str
    text: str
    limit: int
    is_output: bool = False
    is_said: bool = False


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The pieces of messages, in their order, redacted. `spoke` is whether a person says any of it."""

    pieces: tuple[Piece, ...]
    spoke: bool


def read_source(messages: Sequence[Message], artifacts: Artifacts, known: dict[str, str] | None = None) -> Source:
    """Return the words, calls and results of `messages`; a digest is replaced by its original if that was kept.

    `known` is the cache of `jp.context.redaction.redacted`.
    """
    pieces = _pieces(messages, artifacts, {} if known is None else known)
    return Source(pieces=tuple(pieces), spoke=any(map(speaks, messages)))


def parts_of(source: Source, room: int, most: int) -> tuple[str, ...]:
    """Return `source` as at most `most` texts of at most `room` tokens each.

    Long pieces are cut until everything fits; if that is not enough, the middle is dropped, with a note.
    """
    texts: list[str] = []
    for squeeze in _SQUEEZES:
        if texts and not any(len(piece.text) > piece.limit // squeeze for piece in source.pieces):
            continue
        texts = [_shown(piece, squeeze) for piece in source.pieces]
        parts = _packed(texts, room)
        if len(parts) <= most:
            return parts
    return _packed(_ends(texts, room, most), room)[:most]


def _packed(texts: Sequence[str], room: int) -> tuple[str, ...]:
    parts: list[list[str]] = []
    tokens = 0
    for text in texts:
        cost = estimate_tokens(text) + 1
        if not parts or tokens + cost > room:
            parts.append([])
            tokens = 0
        parts[-1].append(text)
        tokens += cost
    return tuple("\n".join(part) for part in parts)


def _ends(texts: Sequence[str], room: int, most: int) -> list[str]:
    """Return the first and the last of `texts` that fill `most` parts of `room` tokens, a little more of the last."""
    costs = [estimate_tokens(text) + 1 for text in texts]
    whole = max(room - max(costs), 0) * most
    head, left = 0, whole * _HEAD_PERCENT // 100
    while head < len(texts) and costs[head] <= left:
        left -= costs[head]
        head += 1
    tail, left = len(texts), whole - whole * _HEAD_PERCENT // 100
    while tail > head and costs[tail - 1] <= left:
        tail -= 1
        left -= costs[tail]
    return [*texts[:head], _OMITTED.format(count=tail - head), *texts[tail:]]


def _shown(piece: Piece, squeeze: int) -> str:
    return f"{piece.label}\n{cut_plainly(piece.text, piece.limit // squeeze)}\n"


def _pieces(messages: Sequence[Message], artifacts: Artifacts, known: dict[str, str]) -> Iterator[Piece]:
    names: dict[str, str] = {}
    for position, message in enumerate(messages):
        text = without_secrets(original_text(message, artifacts), known)
        if message.role == "tool":
            label = f"[{position}] result of {names.get(message.call_id, 'a tool')}{_ended(message)}:"
            yield Piece(label=label, text=text, limit=RESULT_LIMIT, is_output=True)
            for said in message.meta.said:
                label = f"[{position}] person, asked {without_secrets(said.question, known)!r}:"
                yield Piece(label=label, text=without_secrets(said.answer, known), limit=SAID_LIMIT, is_said=True)
            continue
        if text.strip():
            label, is_said = f"[{position}] {_speaker(message)}:", is_real_user(message)
            yield Piece(label=label, text=text, limit=SAID_LIMIT, is_said=is_said)
        for call in message.calls:
            names[call.id] = call.name
            arguments = without_secrets(call.arguments, known)
            yield Piece(label=f"[{position}] call of {call.name}:", text=arguments, limit=ARGUMENTS_LIMIT)


def original_text(message: Message, artifacts: Artifacts) -> str:
    """Return the text of `message`; a digest is replaced by its original if that was kept."""
    digested = message.meta.digested
    if digested is not None:
        original = artifacts.recall(artifacts.handle(digested.sha256))
        if original is not None:
            return original
    if isinstance(message.content, str):
        return message.content
    return "\n\n".join(filter(None, (_text_of(block, artifacts) for block in message.content)))


def _text_of(block: Block, artifacts: Artifacts) -> str:
    match block:
        case TextBlock(text=text):
            return text
        case ReasoningBlock():
            return ""
        case StoredBlock(sha256=sha256, chars=chars):
            handle = artifacts.handle(sha256)
            found = artifacts.recall(handle) if chars is not None else None
            kind = block.mime_type or "content"
            return f"[{kind}, {block.size} bytes, handle {handle}]" if found is None else found
        case _:
            assert_never(block)


def _speaker(message: Message) -> str:
    if message.meta.kind == "synthetic" or message.meta.hidden:
        return "host"
    return {"user": "person", "assistant": "model", "system": "host"}.get(message.role, "host")


def _ended(message: Message) -> str:
    facts = message.meta.facts
    code = facts.exit_code if facts is not None else None
    if code is not None:
        return f" (exit {code})"
    return " (error)" if message.is_error else ""
