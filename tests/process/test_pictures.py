"""The pictures in `docs/images`: terminals after a command, and an exported page in a browser.

Run this file to make them again; those of the page need Chromium.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import NamedTuple

import pytest
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from forked import run_jp
from running import TIMEOUT_SECS
from terminal import Terminal, jp_at_terminal

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
PAGES = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
COLUMNS = 96
PAGE = "page.html"
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
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class PagePicture(NamedTuple):
    """An exported page in a window of this size; `scheme` is 1 if the system is set to light, 0 to dark."""

    name: str
    width: int
    height: int
    scheme: int


PAGE_PICTURES = (PagePicture("export-light", 1280, 900, 1), PagePicture("export-dark", 390, 844, 0))
FILES = {
    "shed/.jp/config.toml": '[assistant.model]\nid = "script/demo"\n',
    "shed/data/visits.log": "".join(f"visit {number} of the shed\n" for number in range(1, 2001)),
    ".home-of-shed/config/config.toml": "[conversation.tools.fs_read_file]\nenable = true\n",
}


def drawn() -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of each picture, and the exported page; all are of one conversation."""
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
        for arguments in (("conversation", "compact"), ("conversation", "export", ".", "--to", "html")):
            done = run_jp(*arguments, cwd=directory / "shed", env=environment)
            assert done.code == 0, done.stderr
        yield PAGE, done.stdout
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


def photographed(page: str, picture: PagePicture, directory: Path) -> bytes:
    """Return the picture of a page in a browser, as PNG."""
    assert CHROMIUM is not None, "install Chromium"
    path, image = directory / PAGE, directory / f"{picture.name}.png"
    path.write_text(page, encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--screenshot={image}")
    look = (
        f"--window-size={picture.width},{picture.height}",
        f"--blink-settings=preferredColorScheme={picture.scheme}",
    )
    subprocess.run(
        [CHROMIUM, *options, *look, f"--user-data-dir={directory / 'profile'}", path.as_uri()],
        check=True,
        capture_output=True,
        timeout=TIMEOUT_SECS,
    )
    return image.read_bytes()


def words(image: str) -> str:
    """Return the text of a picture."""
    return "\n".join(TEXT.findall(image))


def test_each_picture_shows_what_its_command_shows() -> None:
    made = dict(drawn())
    assert "What filled the context" in made.pop(PAGE)
    for name, image in made.items():
        assert words((IMAGES / f"{name}.svg").read_text(encoding="utf-8")) == words(image), f"{name}: make pictures"


def test_each_picture_is_on_a_page_and_nothing_in_it_comes_from_elsewhere() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)

    assert {path.stem for path in IMAGES.glob("*.png")} == {item.name for item in PAGE_PICTURES}
    assert {path.stem for path in IMAGES.glob("*.svg")} == {item.name for item in PICTURES} - WITHOUT_PICTURE
    for path in IMAGES.iterdir():
        assert f"images/{path.name})" in pages, path.name
    for path in IMAGES.glob("*.svg"):
        assert "url(http" not in path.read_text(encoding="utf-8").replace('"', ""), path.name


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_an_exported_page_is_light_and_dark_in_a_browser(tmp_path: Path) -> None:
    page = dict(drawn())[PAGE]
    light, dark = (photographed(page, PagePicture("page", 390, 844, scheme), tmp_path) for scheme in (1, 0))

    for image in (light, dark):
        assert (int.from_bytes(image[16:20]), int.from_bytes(image[20:24])) == (390, 844)
    assert light != dark


if __name__ == "__main__":
    for made, image in drawn():
        if made != PAGE:
            (IMAGES / f"{made}.svg").write_text(image, encoding="utf-8")
            continue
        for item in PAGE_PICTURES if CHROMIUM else ():
            with TemporaryDirectory() as place:
                (IMAGES / f"{item.name}.png").write_bytes(photographed(image, item, Path(place)))
