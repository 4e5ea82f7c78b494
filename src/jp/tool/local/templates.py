"""Commands that are templates: Jinja, sandboxed; values become variables of a shell. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec

from jp.conversation.entries import JsonObject
from jp.errors import JpError

if TYPE_CHECKING:
    from jinja2 import Environment


_BEGIN, _END = "\ue000", "\ue001"
_MARK = re.compile(f"{_BEGIN}([0-9]+){_END}")
_CODE = re.compile(rf"\\.|\$\(\(|\)\)|\$\(|\$\{{|{_MARK.pattern}|.", re.DOTALL)
_LITERAL = re.compile(rf"{_MARK.pattern}|.", re.DOTALL)
"""Inside single quotes and in a comment, a backslash is nothing special."""

_CLOSE = ""
_QUOTED = {"`": "`", "$(": "(", "$((": "((", "${": "{"}
_OPENING = {**_QUOTED, "'": "'", '"': '"', "(": "(", "#": "#"}
_STEPS: dict[str, dict[str, str]] = {
    "": _OPENING,
    "(": {**_OPENING, ")": _CLOSE},
    "`": {**_OPENING, "`": _CLOSE},
    "((": {**_QUOTED, "))": _CLOSE},
    "{": {**_QUOTED, "'": "'", '"': '"', "}": _CLOSE},
    '"': {**_QUOTED, '"': _CLOSE},
    "'": {"'": _CLOSE},
    "#": {"\n": _CLOSE},
}
"""In which place what opens which other one, or closes this one."""


def mark(number: int) -> str:
    """What stands in a script for value `number` until `with_variables` has seen it."""
    return f"{_BEGIN}{number}{_END}"


def unmarked(text: str, values: Sequence[str]) -> str:
    """`text` with the values themselves in place of their marks."""

    def value(found: re.Match[str]) -> str:
        number = int(found[1])
        return values[number] if number < len(values) else found[0]

    return _MARK.sub(value, text)


def variable(number: int) -> str:
    """The variable that holds value `number`."""
    return f"JP_VALUE_{number + 1}"


def with_variables(script: str) -> str:
    """`script` with a variable in place of each mark, so quoted that its value is one word, or a part of one.

    Raises:
        JpError: a value stands in arithmetic, which some shells evaluate as code.
    """
    pieces: list[str] = []
    places = [""]
    position = 0
    while position < len(script):
        place = places[-1]
        found = (_LITERAL if place in {"'", "#"} else _CODE).match(script, position)
        sign = found[0] if found else script[position]
        # Two brackets end arithmetic; elsewhere the second may end something else than the first.
        sign = sign[:1] if sign == "))" and place != "((" else sign
        number = None if found is None else found[1]
        pieces.append(sign if number is None else _reference(int(number), place))
        _move(places, sign, script, position)
        position += len(sign)
    return "".join(pieces)


def _move(places: list[str], sign: str, script: str, position: int) -> None:
    step = _STEPS[places[-1]].get(sign)
    if sign == "#" and places[-1] != "#" and not _begins_word(script, position):
        return
    if step == _CLOSE:
        places.pop()
    elif step is not None:
        places.append(step)


def _begins_word(script: str, position: int) -> bool:
    return position == 0 or script[position - 1] in " \t\n;|&("


def _reference(number: int, place: str) -> str:
    bare = f"${{{variable(number)}}}"
    match place:
        case "((":
            raise JpError("a value stands in `$((…))`, where a shell may run it: give it to a program instead")
        case "'":
            return f"'\"{bare}\"'"
        case '"' | "{" | "#":
            return bare
        case _:
            return f'"{bare}"'


MOST_CHARS = 2 * 1024 * 1024
"""What a command renders to at most; systems take less."""


class TemplateError(JpError):
    """A command of a local tool cannot be rendered."""


def are_placing(templates: Iterable[str]) -> bool:
    """Whether these do no more than to put values in their places: see `jp.process.apart.is_placing`."""
    from jinja2 import TemplateSyntaxError

    from jp.process.apart import is_placing

    environment = _environment(_text)
    try:
        return all(is_placing(environment, template) for template in templates)
    except TemplateSyntaxError:
        return True  # and nothing is computed before that is found out again
    except RecursionError:
        return False


def render(template: str, values: JsonObject) -> str:
    """`template` with its expressions replaced.

    Raises:
        TemplateError: it cannot be rendered.
    """
    return _rendered(template, values, _environment(_text))


def render_script(template: str, values: JsonObject) -> tuple[str, list[str]]:
    """A shell's script with marks (`shell_words`) where values stand, and these values.

    Raises:
        TemplateError: it cannot be rendered, or changes what expressions have given, so that a value could escape.
    """
    found: list[str] = []
    size = 0

    def keep(value: object) -> str:
        nonlocal size
        text = unmarked(_text(value), found)
        size += len(text)
        if size > MOST_CHARS:
            raise _too_long()
        found.append(text)
        return mark(len(found) - 1)

    environment = _environment(keep)
    _check_script(environment, template)
    return _rendered(template, values, environment), found


def _text(value: object) -> str:
    from jinja2 import Undefined

    match value:
        case str() | Undefined():
            return str(value)  # which raises where it is not defined
        case None:
            return ""
        case _:
            return msgspec.json.encode(value, enc_hook=_listed).decode()


def _listed(value: Any) -> list[Any]:
    """What a filter such as `map` gives, as a list.

    Raises:
        TypeError: it is a function or the like.
    """
    if isinstance(value, Iterable):
        return [*cast("Iterable[Any]", value)]
    raise TypeError(f"a {type(value).__name__} is no value")


def _rendered(template: str, values: JsonObject, environment: Environment) -> str:
    try:
        return _joined(environment.from_string(template).generate(values))
    except JpError:
        raise
    except Exception as error:  # noqa: BLE001 - an expression can raise whatever Python has
        from jp.process.apart import reason_of

        raise _failed(template, reason_of(error)) from None


def _joined(pieces: Iterable[str]) -> str:
    kept: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MOST_CHARS:
            raise _too_long()
        kept.append(piece)
    return "".join(kept)


def _environment(finalize: Callable[[object], str]) -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class MembersFirst(ImmutableSandboxedEnvironment):
        """An argument may be called `items` or `keys`, as a method is."""

        def getattr(self, obj: Any, attribute: str) -> Any:
            if not isinstance(obj, dict):
                return super().getattr(obj, attribute)
            members = cast("dict[str, Any]", obj)
            with suppress(KeyError):
                return members[attribute]
            if hasattr(members, attribute):
                return super().getattr(members, attribute)
            return self.undefined(f"there is no {attribute!r}; there are: {', '.join(members) or 'none'}")

    environment = MembersFirst(undefined=StrictUndefined, keep_trailing_newline=True, finalize=finalize)
    del environment.globals["lipsum"]  # chance
    return environment


def _check_script(environment: Environment, template: str) -> None:
    """Refuse blocks whose filters may put a value where no mark is.

    Raises:
        TemplateError: there is one, or it is no template.
    """
    from jinja2 import TemplateSyntaxError
    from jinja2.nodes import CallBlock, FilterBlock

    try:
        parsed = environment.parse(template)
    except TemplateSyntaxError as error:
        raise _failed(template, str(error)) from None
    if parsed.find(FilterBlock) is not None or parsed.find(CallBlock) is not None:
        raise _failed(template, "a shell's command may have no filter and no call blocks")


def _too_long() -> TemplateError:
    return TemplateError(f"the command renders to more than {MOST_CHARS:,} characters")


def _failed(template: str, reason: str) -> TemplateError:
    return TemplateError(f"the template {template!r} cannot be rendered: {reason}")
