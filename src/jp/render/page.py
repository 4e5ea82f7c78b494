"""A conversation as one HTML page that loads nothing: template, style and script are in it, allowed by their hashes.

All text is escaped by Jinja or by markdown-it without raw HTML, images or any address but those of the web and of mail.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

_DIRECTORY = Path(__file__).parent
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_KINDS = (
    *("system_prompt", "tool_definitions", "mcp_tools", "rules", "skills", "memory", "subagents", "user"),
    *("attachments", "assistant", "reasoning", "arguments", "results", "images", "summaries", "digests", "synthetic"),
)
_HEIGHT = 140


def page(document: Mapping[str, Any]) -> str:
    """Return the page for an exported conversation, as `jp.app.export` describes it."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    markdown = _markdown()
    environment.filters["markdown"] = lambda text: markdown(_printable(str(text)))
    environment.filters["printable"] = _printable
    environment.filters["image"] = _image
    style, script = ((_DIRECTORY / name).read_text("utf-8") for name in ("page.css", "page.js"))
    template = environment.from_string((_DIRECTORY / "page.html").read_text("utf-8"))
    return template.render(
        document=document,
        chart=_chart(document["turns"]),
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _markdown() -> Callable[[str], str]:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable(["image"])
    parser.validateLink = _is_linked  # type: ignore[method-assign] # its documented way to restrict addresses
    return parser.render


def _is_linked(address: str) -> bool:
    return address.strip().lower().startswith(("https://", "http://", "mailto:"))


def _printable(text: str) -> str:
    """Return `text` without control characters, which a page cannot show."""
    return "".join(character for character in text if character in "\n\t" or ord(character) >= ord(" "))


def _image(part: Mapping[str, Any]) -> str:
    """Return the address of an image that is in the page; empty for what is none."""
    if part.get("mime_type") not in _IMAGES or not part.get("data"):
        return ""
    return f"data:{part['mime_type']};base64,{b64encode(part['data']).decode()}"


def _chart(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the bars of the chart: one for each measured turn, a segment for each kind, what was freed on top."""
    measured = [turn for turn in turns if turn["context"]]
    most = max((sum(turn["context"].values()) + turn["freed"] for turn in measured), default=0) or 1
    kinds = [kind for kind in _KINDS if any(kind in turn["context"] for turn in measured)]
    bars: list[dict[str, Any]] = []
    for position, turn in enumerate(measured):
        top = float(_HEIGHT)
        segments: list[dict[str, Any]] = []
        counted = [*((kind, turn["context"].get(kind, 0)) for kind in kinds), ("freed", turn["freed"])]
        for kind, tokens in counted:
            height = round(tokens / most * _HEIGHT, 2)
            if tokens:
                top = round(top - height, 2)
                segments.append({"kind": kind, "tokens": tokens, "y": top, "height": height})
        bars.append({
            "turn": turn["number"],
            "position": position,
            "segments": segments,
            "total": sum(turn["context"].values()),
        })
    has_freed = any(turn["freed"] for turn in measured)
    return {"bars": bars, "kinds": [*kinds, *(["freed"] if has_freed else [])], "most": most, "height": _HEIGHT}
