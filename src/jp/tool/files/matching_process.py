"""Matching with Python's `re`, as a program of its own: an expression may take for ever, and holds up its process.

Standard input is a line of JSON, {"mode", "pattern", "most", "seconds"}, and a text. Standard output is JSON. Mode
`lines`: in "lines", the numbers, counted from 1, of the lines in which the pattern is found. Mode `spans`: in "spans",
where the pattern matches the text, [start, end, groups], at most `most` and one more. A "problem" is what is wrong with
the pattern. After `seconds` it ends, whoever has started it: they may be gone. Needs nothing but Python itself.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator


def _lines(pattern: str, text: str) -> Iterator[int]:
    search = re.compile(pattern).search
    lines = text.split("\n")
    lines.pop()
    return (number for number, line in enumerate(lines, 1) if search(line))


def _spans(pattern: str, text: str, most: int) -> Iterator[tuple[int, int, dict[str, str | None]]]:
    expression = re.compile(pattern, re.MULTILINE)
    for count, match in enumerate(expression.finditer(text)):
        numbered = {str(number): match[number] for number in range(expression.groups + 1)}
        yield match.start(), match.end(), {**numbered, **match.groupdict()}
        if count == most:
            return


def main() -> None:
    """Answer one request."""
    heading, _, text = sys.stdin.buffer.read().partition(b"\n")
    request = json.loads(heading)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, request["seconds"])
    body = text.decode()
    found: dict[str, object]
    try:
        if request["mode"] == "lines":
            found = {"lines": [*_lines(request["pattern"], body)]}
        else:
            found = {"spans": [*_spans(request["pattern"], body, request["most"])]}
    except (re.error, OverflowError, RecursionError) as error:
        found = {"problem": str(error)}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
