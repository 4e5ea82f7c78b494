"""Where the strings of a JSON text are. The text is checked on the way and no value is ever built.

So numbers of any length, any nesting, repeated keys and halves of surrogate pairs are all the same to it. It takes what
RFC 8259 allows and nothing else: no `NaN`, no byte order mark, no trailing comma.
"""

from __future__ import annotations

import re
from typing import Literal

_TOKEN = re.compile(
    r"[ \t\n\r]*+(?:"
    r'(?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")'
    r"|(?P<scalar>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)"
    r"|(?P<brace>\{)|(?P<end_brace>\})|(?P<bracket>\[)|(?P<end_bracket>\])|(?P<comma>,)|(?P<colon>:))"
)
_BLANK = re.compile(r"[ \t\n\r]*+")

_State = Literal["value", "first value", "key", "first key", "colon", "in object", "in array", "end"]
_Step = _State | Literal["open object", "open array", "leaf", "close"]

_OPENING: dict[str, _Step] = {
    "string": "leaf",
    "scalar": "leaf",
    "brace": "open object",
    "bracket": "open array",
}
_STEPS: dict[_State, dict[str, _Step]] = {
    "value": _OPENING,
    "first value": {**_OPENING, "end_bracket": "close"},
    "key": {"string": "colon"},
    "first key": {"string": "colon", "end_brace": "close"},
    "colon": {"colon": "value"},
    "in object": {"comma": "key", "end_brace": "close"},
    "in array": {"comma": "value", "end_bracket": "close"},
    "end": {},
}


def string_values(text: str, longer_than: int) -> list[tuple[int, int]] | None:
    """From where to where the strings that are values stand in `text`, quotes included; None if it is not JSON.

    Only those that have more than `longer_than` characters between their quotes. Names of members are none.
    """
    found: list[tuple[int, int]] = []
    state: _State = "value"
    inside: list[_State] = ["end"]
    position = 0
    while (token := _TOKEN.match(text, position)) is not None:
        position = token.end()
        kind = token.lastgroup or ""
        step = _STEPS[state].get(kind)
        if step is None:
            return None
        if step == "leaf":
            start = token.start(kind)
            if kind == "string" and position - start - 2 > longer_than:
                found.append((start, position))
            state = inside[-1]
        elif step == "open object":
            inside.append("in object")
            state = "first key"
        elif step == "open array":
            inside.append("in array")
            state = "first value"
        elif step == "close":
            inside.pop()
            state = inside[-1]
        else:
            state = step
    return found if state == "end" and _BLANK.fullmatch(text, position) else None
