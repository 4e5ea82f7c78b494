"""Values in a shell's script: each stands there as a variable, so that nothing in it is ever read as code. Pure.

A value may stand inside or outside of quotes. What a value expands to is not parsed again by a shell, so even where
the script is so strange that the quotes around a value are not understood here, it is nothing but text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jp.errors import JpError

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
