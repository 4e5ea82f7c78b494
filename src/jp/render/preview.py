"""What a tool says that a call would do, as it is shown with the question whether it may. Pure."""

from __future__ import annotations

from jp.render.sanitise import sanitise
from jp.render.wrap import paint

_HEADS = ("--- ", "+++ ", "diff ")
_STYLES = {"+": "32", "-": "31", "@": "36"}


def preview_text(preview: str, *, colour: bool, most_lines: int | None = None) -> str:
    """`preview` in whole lines, fit to be shown; where it is a unified diff, with its colours.

    Of more than `most_lines`, the first are shown, and how many there are.
    """
    lines = sanitise(preview).splitlines()
    is_diff = any(line.startswith("@@ ") for line in lines)
    shown = lines if most_lines is None else lines[:most_lines]
    text = "".join(f"{_painted(line) if colour and is_diff else line}\n" for line in shown)
    hidden = len(lines) - len(shown)
    return f"{text}({hidden:,} more lines)\n" if hidden else text


def _painted(line: str) -> str:
    style = "1" if line.startswith(_HEADS) else _STYLES.get(line[:1], "")
    return paint([(line, style)])
