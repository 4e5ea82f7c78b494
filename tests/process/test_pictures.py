"""The pictures in `docs/images/*.svg`: what a terminal shows after a command; run this file to make them again."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from terminal import Terminal, jp_at_terminal

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
PAGES = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
COLUMNS = 96
DIRECTORY = "/tmp"  # noqa: S108 - a path of one length everywhere: tokens are estimated from lengths
SHOWN_DIRECTORY = "/home/robin88"
QUESTION = r"^Run fs_read_file.*\[n\]$"
DURATION = re.compile(r"(?<= )[\d.]+ m?s\b")
OTHER_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]")
REMOTE_FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
TEXT = re.compile(r"<text [^>]*>(.*?)</text>")


class Picture(NamedTuple):
    """A command, and whether a tool asks for approval."""

    name: str
    command: str
    is_asked: bool = False


PICTURES = (
    Picture("log", 'jp query --new "Is visit 1000 in data/visits.log?"', is_asked=True),
    Picture("query", 'jp query --attach src/loans.py "Why does overdue.py crash?"'),
    Picture("question", 'jp query "What else depends on due()?"', is_asked=True),
    Picture("recall", 'jp query "And visit 1500?"'),
    Picture("context", "jp conversation context"),
    Picture("compact", "jp conversation compact --dry-run"),
    Picture("usage", "jp conversation usage"),
)
WITHOUT_PICTURE = {"log", "recall"}
"""Steps that only fill the conversation."""
FILES = {
    "shed/.jp/config.toml": '[assistant.model]\nid = "script/demo"\n',
    "shed/data/visits.log": "".join(f"visit {number} of the shed\n" for number in range(1, 2001)),
    ".home-of-shed/config/config.toml": "[conversation.tools.fs_read_file]\nenable = true\n",
}


def drawn() -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each picture; all are of one conversation."""
    directory = Path(mkdtemp(prefix="", dir=DIRECTORY))
    try:
        for name in ("src", ".jp/scenarios"):
            shutil.copytree(ROOT / "workspace-example" / name, directory / "shed" / name)
        for name, text in FILES.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text, encoding="utf-8")
        environment = {"JP_SESSION": "pictures"}
        for picture in PICTURES:
            arguments = shlex.split(picture.command)[1:]
            size = COLUMNS, 60
            with jp_at_terminal(*arguments, cwd=directory / "shed", env=environment, size=size) as terminal:
                question = question_answered(terminal) if picture.is_asked else ""
                assert terminal.finish() == 0, terminal.shown
            if picture.name not in WITHOUT_PICTURE:
                yield picture.name, svg(picture, (question or terminal.stays).replace(str(directory), SHOWN_DIRECTORY))
    finally:
        shutil.rmtree(directory)


def question_answered(terminal: Terminal) -> str:
    """Ask a tool's question for its keys, and allow the call; return what was shown until then."""
    terminal.question(QUESTION)
    terminal.type("?\n")
    terminal.question(QUESTION)
    shown = terminal.screen.text
    terminal.type("y\n")
    return shown


def svg(picture: Picture, shown: str) -> str:
    """Return the picture of a command and what it has shown."""
    shown = DURATION.sub("9 ms", shown)
    console = Console(
        record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False
    )
    console.print(Text.assemble(("$ ", "bold green"), (picture.command, "bold")))
    console.print(Text.from_ansi(OTHER_SEQUENCE.sub("", shown)), highlight=False)
    text = console.export_svg(title="jp", theme=MONOKAI, unique_id=f"jp-{picture.name}")
    return REMOTE_FONT.sub("", text)


def words(image: str) -> str:
    """Return the text of a picture."""
    return "\n".join(TEXT.findall(image))


def test_each_picture_shows_what_its_command_shows() -> None:
    for name, image in drawn():
        assert words((IMAGES / f"{name}.svg").read_text(encoding="utf-8")) == words(image), f"{name}: make pictures"


def test_each_picture_is_on_a_page_and_nothing_in_it_comes_from_elsewhere() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)

    assert {path.stem for path in IMAGES.glob("*.svg")} == {item.name for item in PICTURES} - WITHOUT_PICTURE
    for path in IMAGES.iterdir():
        assert f"images/{path.name})" in pages, path.name
    for path in IMAGES.glob("*.svg"):
        assert "url(http" not in path.read_text(encoding="utf-8").replace('"', ""), path.name


if __name__ == "__main__":
    for made, image in drawn():
        (IMAGES / f"{made}.svg").write_text(image, encoding="utf-8")
