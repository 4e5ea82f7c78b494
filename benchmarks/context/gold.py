"""What a session holds that its reader would need: taken from it by rules, before anything is left out.

Five classes: files that were read or changed, commands with how they ended, lines that tell of an error, identifiers,
and what the person asked for. The rules share no code with `jp.context`, which has its own to decide what to show.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, cast, get_args

import msgspec

from context.sessions import TOOLS
from jp.context.types import Call, Message, Transcript, texts_of

Kind = Literal["file", "command", "error", "identifier", "requirement"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_ERROR_LINE = re.compile(
    r"^[ \t]{0,8}(?:[\w./-]{1,120}:[0-9]+(?::[0-9]+)?:? )?"
    r"(?:error(?:\[\w+\])?|fatal|panic|FAILED|--- FAIL|FAIL|[A-Z]\w{2,40}(?:Error|Exception))[: ][^\n]{4,180}$",
    re.MULTILINE | re.IGNORECASE,
)
_IDENTIFIER = re.compile(
    r"https?://[^\s\"'`<>()\[\]{}\\|]{6,200}"
    r"|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}\b"
    r"|(?<![\w&/])#[0-9]{1,6}\b|\b[A-Z]{2,9}-[0-9]{1,6}\b"
)
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?](?=\s)|$)", re.MULTILINE)
_ERRORS_OF_A_RESULT = 10
_SENTENCES_OF_A_MESSAGE = 40
_WORDS_OF_A_SENTENCE = 4
_COMMAND_CHARACTERS = 80
_ENDING_WITHIN = 400
_RUNNING = frozenset({"terminal"})
_FILES = frozenset({"read", "patch", "write"})


class Fact(NamedTuple):
    """Something to be found again. `exit_code` is a command's, where its host recorded it."""

    kind: Kind
    text: str
    exit_code: int | None = None


class Place(NamedTuple):
    """Texts that are read together: a call's and its result's, or one message's; white space is one space each."""

    text: str


def gold_of(messages: Transcript) -> tuple[Fact, ...]:
    """The facts in `messages`, each once."""
    found: dict[Fact, None] = {}
    for message in messages:
        for fact in _facts_in(message):
            found[fact] = None
    for call, result in pairs(messages):
        for fact in _facts_of_call(call, result):
            found[fact] = None
    for fact in _identifiers(messages):
        found[fact] = None
    return tuple(found)


def places_of(messages: Transcript) -> list[Place]:
    """What a model that is sent `messages` reads; its earlier reasoning is not counted."""
    places = [Place(one_line("\n".join(texts_of(message)))) for message in messages if message.role != "tool"]
    for call, result in pairs(messages):
        said = "" if result is None else "\n".join(texts_of(result))
        places.append(Place(one_line("\n".join((*strings_of(call.arguments), said)))))
    return places


def found_in(facts: Iterable[Fact], places: Iterable[Place]) -> frozenset[Fact]:
    """Those of `facts` that stand in one of `places`, literally but for white space."""
    texts = [place.text for place in places]
    everything = "\n".join(texts)
    return frozenset(fact for fact in facts if _is_in(fact, texts, everything))


def availability(facts: Iterable[Fact], found: frozenset[Fact]) -> float:
    """The share of `facts` in `found`: of each class that there is, then the mean of the classes."""
    shares = shares_by_kind(facts, found)
    return sum(shares.values()) / len(shares) if shares else 1.0


def shares_by_kind(facts: Iterable[Fact], found: frozenset[Fact]) -> dict[Kind, float]:
    """The share of the facts of each class that is in `found`; classes without facts are not in it."""
    count = Counter(fact.kind for fact in facts)
    had = Counter(fact.kind for fact in found)
    return {kind: had[kind] / count[kind] for kind in KINDS if count[kind]}


def pairs(messages: Transcript) -> Iterator[tuple[Call, Message | None]]:
    """Each call with its result."""
    results = {message.call_id: message for message in messages if message.role == "tool"}
    for message in messages:
        for call in message.calls:
            yield call, results.get(call.id)


def one_line(text: str) -> str:
    """`text` with one space for any white space."""
    return " ".join(text.split())


def _is_in(fact: Fact, texts: list[str], everything: str) -> bool:
    if fact.text not in everything:
        return False
    if fact.exit_code is None:
        return True
    return any(_ends(text, fact.text, fact.exit_code) for text in texts if fact.text in text)


def _ends(text: str, command: str, code: int) -> bool:
    """Whether `text` says after `command` how it ended."""
    after = text.split(command)[1:]
    said = rf"(?i)\b(?:exited with code|exit code:?|exit) {code}\b" + ("|outcome: succeeded" if code == 0 else "")
    return any(re.search(said, part[:_ENDING_WITHIN] + " " + part[-_ENDING_WITHIN:]) for part in after)


def _facts_in(message: Message) -> Iterator[Fact]:
    if message.role != "user" or message.meta.kind != "real":
        return
    for text in texts_of(message):
        sentences = (one_line(found[0]) for found in _SENTENCE.finditer(text))
        wanted = [each for each in sentences if each.count(" ") >= _WORDS_OF_A_SENTENCE - 1]
        yield from (Fact("requirement", each) for each in wanted[:_SENTENCES_OF_A_MESSAGE])


def _facts_of_call(call: Call, result: Message | None) -> Iterator[Fact]:
    known = None if result is None else result.meta.facts
    if known is None or result is None:
        return
    if known.kind in _FILES and known.path:
        yield Fact("file", one_line(known.path))
    if known.kind in _RUNNING:
        command = one_line(_command(call))[:_COMMAND_CHARACTERS].strip()
        if command:
            yield Fact("command", command, known.exit_code)
    if known.kind in {"terminal", "test"}:
        lines = (one_line(found[0]) for found in _ERROR_LINE.finditer("\n".join(texts_of(result))))
        yield from (Fact("error", line) for line, _ in zip(lines, range(_ERRORS_OF_A_RESULT), strict=False))


def _command(call: Call) -> str:
    subject = TOOLS[call.name].subject
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, object])
    except msgspec.DecodeError:
        return ""
    value = arguments.get(subject, "")
    return value if isinstance(value, str) else ""


def _identifiers(messages: Transcript) -> Iterator[Fact]:
    """Identifiers that a person or a model wrote, or that stand in more than one message."""
    spoken: set[str] = set()
    count: Counter[str] = Counter()
    for message in messages:
        texts = [*texts_of(message), *(text for call in message.calls for text in strings_of(call.arguments))]
        named = {found[0].rstrip(".,:;*") for text in texts for found in _IDENTIFIER.finditer(text)}
        count.update(named)
        if message.role in {"user", "assistant"}:
            spoken |= named
    yield from (Fact("identifier", name) for name, number in count.items() if number > 1 or name in spoken)


def strings_of(arguments: str) -> list[str]:
    """The strings in `arguments`, decoded; where they are no JSON, all of them."""
    try:
        return list(_strings_in(msgspec.json.decode(arguments)))
    except msgspec.DecodeError:
        return [arguments]


def _strings_in(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for below in cast("dict[str, object]", value).values():
                yield from _strings_in(below)
        case list():
            for below in cast("list[object]", value):
                yield from _strings_in(below)
        case _:
            pass
