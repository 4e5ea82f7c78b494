"""The scenario file: what a scripted model answers to what. Documented for users in `docs/script-provider.md`."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

import msgspec

from jp.conversation.entries import JsonObject
from jp.errors import ConfigurationError
from jp.likeness import nearest
from jp.provider.errors import ErrorKind

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Stop = Literal["stop", "tools", "length", "refused"]

MAX_BYTES = 4 * 1024 * 1024
"""A larger file is no scenario."""


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which requests a reply is for: every condition that is given has to hold.

    `exact`, `contains` and `regex` look at the user's last text, or with `tool` (a name, or `*`) at the result of that
    tool. `error` says whether that result is one. `resource` names something that was attached at this turn. `begun`
    is for requests that ask to go on with an answer that was cut off.
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
        """Whether the words matter."""
        return any(condition is not None for condition in (self.exact, self.contains, self.regex))


class Call(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call of a tool. Text as `arguments` is sent as it is, so that it need not be JSON."""

    name: str
    arguments: JsonObject | str = {}


class Tokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the reply says that it cost."""

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
        raise ConfigurationError(f"scenario {source!r} has no reply", hint="Give it at least one `[[reply]]`.")
    for index, reply in enumerate(scenario.reply):
        problem = _problem(reply)
        if problem:
            raise ConfigurationError(f"scenario {source!r}: reply[{index}]: {problem}", hint=_FORMAT)
    return scenario


_FORMAT = "Replies count from 0; docs/script-provider.md says what they may hold."
_SHAPE = 'A scenario is a list of `[[reply]]` tables, such as `text = "Hello"`.'


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
    """What the decoder says, in words for who wrote the file."""
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
    near = nearest(word, known)
    return f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
