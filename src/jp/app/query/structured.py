"""A turn whose answer has to fit a schema: held against it, asked for once more where it does not, and printed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from jp.app.options import Options
from jp.app.schema_checker import Checker, EndlessSearchError, in_one_line
from jp.conversation.entries import AnyEntry, ChatRequest, ChatResponse, JsonObject, add_usage
from jp.conversation.json_text import NoValue, find_json
from jp.conversation.turns import Attempt, cycles_of, turns_of
from jp.errors import ExitCode, JpError
from jp.remedies import Option, Show, UseOption, join, phrase
from jp.turn.loop import TurnOutcome
from jp.turn.ports import Recorder

LIMIT_SECS = 2.0
"""The longest search for the patterns of a schema. What can be searched at all takes a small part of it."""

_ONE_WAY = "a pattern has to match a text in one way only: `^a+$`, not `^(a|aa)+$`"


class UncheckedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The value was not checked, for this reason."""

    reason: str
    hint: str = ""


class ValidAnswer(msgspec.Struct, frozen=True):
    """The answer is this value."""

    value: Any


class InvalidAnswer(msgspec.Struct, frozen=True):
    """The answer does not fit: `problems` are there in the order in which they are said, at least one."""

    problems: tuple[str, ...]


class TruncatedAnswer(msgspec.Struct, frozen=True):
    """The answer reached the longest that the model may write, so that it may go on."""


class NoAnswer(msgspec.Struct, frozen=True):
    """There is nothing."""


Verdict = ValidAnswer | InvalidAnswer | UncheckedAnswer | TruncatedAnswer | NoAnswer

_REASONS: dict[NoValue, str] = {
    "none": "it holds no JSON value",
    "several": "it holds several JSON values",
    "broken": "its JSON is not well formed",
    "repeated": "an object in its JSON has two members of the same name",
}


async def judge(entries: Sequence[AnyEntry], checker: Checker) -> Verdict:
    """Return a verdict on the newest turn of a stream."""
    attempt = _last_attempt(entries)
    if attempt is None:
        return NoAnswer()
    if attempt.end is not None and attempt.end.finish == "length":
        return TruncatedAnswer()
    answers = [answer for answer in attempt.answers if isinstance(answer, ChatResponse)]
    data = [answer for answer in answers if answer.data is not msgspec.UNSET]
    if not data:
        return NoAnswer()
    values = {msgspec.json.encode(answer.data, order="deterministic"): answer.data for answer in data if _holds(answer)}
    if len(values) == 1:
        return await check_value(next(iter(values.values())), checker)
    return InvalidAnswer((_REASONS["several" if values else _reason_of(data)],))


def _last_attempt(entries: Sequence[AnyEntry]) -> Attempt | None:
    turns = turns_of(entries)
    cycles = cycles_of(turns[-1]) if turns else []
    attempts = cycles[-1].attempts if cycles else ()
    return attempts[-1] if attempts else None


def _holds(answer: ChatResponse) -> bool:
    """Return whether `data` is a value that is found in what came, and not just what came."""
    return answer.text is None or answer.data != answer.text


def _reason_of(data: Sequence[ChatResponse]) -> NoValue:
    for answer in data:
        match find_json(answer.text or ""):
            case "several" | "broken" | "repeated" as reason:
                return reason
            case _:
                pass
    return "none"


async def check_value(
    value: Any, checker: Checker, *, limit_secs: float = LIMIT_SECS
) -> ValidAnswer | InvalidAnswer | UncheckedAnswer:
    """Return whether a value fits, found out in a thread that nobody waits for once the wait is cancelled."""
    from anyio.to_thread import run_sync

    try:
        misfits = await run_sync(partial(checker.misfits, value, limit_secs=limit_secs), abandon_on_cancel=True)
    except EndlessSearchError as error:
        search = f"the search for the pattern {error.pattern!r}"
        if error.timed_out:
            return UncheckedAnswer(reason=f"{search} takes more than {limit_secs:g} s", hint=_ONE_WAY)
        return UncheckedAnswer(reason=f"{search} failed")
    return InvalidAnswer(tuple(map(str, misfits))) if misfits else ValidAnswer(value)


AUTHOR = "jp"
"""The author of requests for a correction."""

Ask = Callable[[ChatRequest, int], Awaitable[TurnOutcome]]
"""Takes a turn of at most so many cycles."""

_LISTED = 20
_OPENING = "Your answer does not fit the JSON Schema that was asked for:"


class SchemaMismatchError(JpError):
    """The answer does not fit the schema; it is in the log."""

    exit_code = ExitCode.SCHEMA_MISMATCH


class NoAnswerError(JpError):
    """The model said nothing."""

    exit_code = ExitCode.REFUSED


class StructuredTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a turn with a schema, and its answer."""

    outcome: TurnOutcome
    verdict: Verdict

    @property
    def decides(self) -> bool:
        """True if the answer decides how the command ends, rather than how the turn ended."""
        ending = self.outcome.ending
        return ending == "answered" or (ending == "capped" and isinstance(self.verdict, TruncatedAnswer))


async def take_structured_turn(
    request: ChatRequest,
    ask: Ask,
    *,
    log: Recorder,
    checker: Checker,
    max_cycles: int,
    notice: Callable[[str], None],
) -> StructuredTurn:
    """Take the turn and, where its answer does not fit, one more that says so, unless no cycle is left for it.

    A correction is a turn of its own: so it is in the log as it was asked, and the request that it makes begins as the
    one before it.
    """
    first = await ask(request, max_cycles)
    verdict = await judge(log.entries, checker)
    left = max_cycles - first.cycles
    if first.ending != "answered" or not isinstance(verdict, InvalidAnswer) or left < 1:
        return StructuredTurn(outcome=first, verdict=verdict)
    notice(f"the answer does not fit the schema ({in_one_line(verdict.problems)}); asking once more")
    second = await ask(correction(verdict, checker.schema), left)
    both = replace(
        second,
        cycles=first.cycles + second.cycles,
        usage=add_usage(first.usage, second.usage),
        denied=first.denied + second.denied,
        unanswered=first.unanswered + second.unanswered,
    )
    return StructuredTurn(outcome=both, verdict=await judge(log.entries, checker))


def correction(unfit: InvalidAnswer, schema: JsonObject) -> ChatRequest:
    """Return the request that says what does not fit."""
    listed = "\n".join(f"- {problem}" for problem in unfit.problems[:_LISTED])
    content = (
        f"{_OPENING}\n\n{listed}\n\n"
        "Give the answer again, as one JSON value that fits the schema and with nothing around it."
    )
    return ChatRequest(content=content, schema=schema, author=AUTHOR)


def is_correction(request: ChatRequest) -> bool:
    """Return whether a request says what does not fit, and is not the user's."""
    return request.author == AUTHOR and request.schema is not None and request.content.startswith(_OPENING)


def where_to_look(options: Options) -> str:
    """Return a hint at the place of an answer that is not printed."""
    if options.persist:
        return phrase("the whole answer is in the log: `", Show("answer", "last"), "`")
    return phrase(Option.NO_PERSIST, " keeps nothing of the answer: remove it to see the answer")


def value_of(structured: StructuredTurn, options: Options) -> Any:
    """Return the value that the turn came to, where it was answered or cut.

    Raises:
        SchemaMismatchError: it came to none.
    """
    match structured.verdict:
        case ValidAnswer(value=value):
            return value
        case InvalidAnswer(problems=problems):
            message = f"the answer does not fit the schema: {in_one_line(problems)}"
            raise SchemaMismatchError(message, hint=where_to_look(options))
        case UncheckedAnswer(reason=reason, hint=hint):
            message = f"the answer could not be checked against the schema: {reason}"
            raise SchemaMismatchError(message, hint=join("; ", (hint, where_to_look(options))))
        case TruncatedAnswer():
            raise SchemaMismatchError(
                "the answer was cut off at the longest that the model may give, so it is not whole",
                hint=phrase("allow more with `", UseOption(Option.PARAMETER, "max_tokens=N"), "`, or ask for less"),
            )
        case NoAnswer():
            raise NoAnswerError("the answer is empty", hint="ask again, or in other words")
        case _:
            assert_never(structured.verdict)
