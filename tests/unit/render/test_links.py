"""Links and notifications: what is written in operating system commands (OSC) of a terminal."""

from __future__ import annotations

import io
import os
import re
from typing import get_args
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jp.render.markdown import MarkdownStream, render_markdown
from jp.render.sanitize import (
    hyperlink,
    link_addresses,
    link_message,
    link_path,
    link_words,
    sanitize,
    without_links,
)
from jp.render.theme import Look, Preferences, look_at
from jp.render.tty import Notification, notification, notify

LINK = re.compile(r"\x1b\]8;;([^\x1b]+)\x1b\\(.*?)\x1b\]8;;\x1b\\", re.DOTALL)
SGR = re.compile(r"\x1b\[[0-9;]*m")
LIVE = {"TERM": "xterm-256color"}
ADDRESS = "https://example.org/a?b=c#d"
anything = st.text(st.characters())
"""Every character, those that steer a terminal included."""
near_addresses = st.lists(
    st.one_of(
        st.sampled_from([ADDRESS, "https://", "http://h", "@", ":8080", "(", ")", ".", "\x1b", "\x07", "/"]), anything
    )
).map("".join)


def links(text: str) -> list[tuple[str, str]]:
    """The targets of the links in a text, each with what is shown."""
    return LINK.findall(text)


@given(anything, st.one_of(anything, anything.map("https://{}".format), anything.map("file://{}".format)))
def test_only_a_target_of_printable_ascii_and_a_known_scheme_is_written(text: str, target: str) -> None:
    shown = hyperlink(text, target)

    if shown != text:
        assert shown == f"\x1b]8;;{target}\x1b\\{text}\x1b]8;;\x1b\\"
        assert target.isascii()
        assert target.isprintable()
        assert " " not in target
        assert urlsplit(target).scheme in {"http", "https", "file"} or "[" in target


@given(near_addresses)
def test_a_link_in_the_text_of_others_leads_where_it_says(text: str) -> None:
    safe = sanitize(text)

    linked = link_addresses(safe)

    assert without_links(linked) == safe
    for target, shown in links(linked):
        assert target == shown
        assert target.isascii()
        assert target.startswith(("http://", "https://"))
        assert "@" not in re.split("[/?#]", target.partition("://")[2])[0]
    assert linked.count("\x1b]8;;") == 2 * len(links(linked))


@given(near_addresses, st.integers(1, 40))
def test_a_link_in_an_answer_leads_where_it_says(text: str, width: int) -> None:
    source = text.replace("\x1b", "").replace("\x9b", "")

    plain = render_markdown(source, Look(width=width, color=True))
    linked = render_markdown(source, Look(width=width, color=True, links=True))

    assert SGR.sub("", without_links(linked)) == SGR.sub("", plain)
    for target, shown in links(linked):
        assert target.startswith(("http://", "https://"))
        assert target.isascii()
        assert SGR.sub("", shown) in target  # a table may break it


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        (f"see {ADDRESS}.", [ADDRESS]),
        (f"(see {ADDRESS})", [ADDRESS]),
        ("https://en.wikipedia.org/wiki/A_(b)", ["https://en.wikipedia.org/wiki/A_(b)"]),
        ("http://[::1]:80/x and http://localhost:1", ["http://[::1]:80/x", "http://localhost:1"]),
        ("https://example.org@evil.example/", []),
        ("https://exаmple.org/", []),  # noqa: RUF001 - a Cyrillic letter
        ("https://example.org/aé", []),
        ("https://example.org/cut…", []),
        ("file:///etc/passwd javascript://x ftp://h/", []),
        (f"https://h/{'a' * 2000}", []),
    ],
)
def test_an_address_is_a_link_where_nothing_of_it_is_hidden(text: str, targets: list[str]) -> None:
    assert [target for target, _ in links(link_addresses(text))] == targets


def test_a_link_whose_text_differs_is_not_at_the_text_but_at_the_address_behind_it() -> None:
    shown = render_markdown(f"[https://good.example]({ADDRESS})", Look(color=True, links=True))

    assert SGR.sub("", without_links(shown)) == f"https://good.example ({ADDRESS})\n"
    assert [target for target, _ in links(shown)] == ["https://good.example", ADDRESS]


def test_an_answer_has_the_same_links_however_it_comes() -> None:
    source = f"Some words before {ADDRESS} and **{ADDRESS}** after.\n\n| a |\n|---|\n| {ADDRESS} |\n"
    look = Look(color=True, links=True)
    stream = MarkdownStream(look)

    in_pieces = "".join([*map(stream.feed, source), stream.finish()])

    assert in_pieces == render_markdown(source, look)
    assert [target for target, _ in links(in_pieces)] == [ADDRESS] * 3


@given(st.text(st.characters(exclude_characters="\x00"), min_size=1))
def test_a_link_to_a_file_names_it_byte_for_byte(name: str) -> None:
    path = f"/{name}"

    linked = link_path("file", path)

    if linked != "file":
        ((target, shown),) = links(linked)
        assert shown == "file"
        parts = urlsplit(target)
        assert parts.hostname == os.uname().nodename.lower()
        assert unquote_to_bytes(parts.path) == path.encode("utf-8", "surrogateescape")


@given(anything, st.dictionaries(anything, st.just("/p"), max_size=3))
def test_words_are_linked_and_nothing_else_is_changed(text: str, paths: dict[str, str]) -> None:
    safe = sanitize(text)

    assert without_links(link_words(safe, paths)) == safe


@given(anything)
def test_a_message_keeps_its_text(text: str) -> None:
    safe = sanitize(text)

    assert without_links(link_message(safe)) == safe


def test_a_message_has_links_to_quoted_absolute_paths() -> None:
    linked = link_message(f"wrote '/a b/c.html' and 'c.html', see {ADDRESS}")

    assert [shown for _, shown in links(linked)] == ["/a b/c.html", ADDRESS]


@pytest.mark.parametrize("kind", get_args(Notification))
@given(text=anything)
@example(text="4;1;100\x07;rm\x1b\\")
def test_a_notification_is_one_sequence_whatever_its_text(kind: Notification, text: str) -> None:
    said = notification(kind, text)

    if kind == "bell":
        assert said == "\a"
        return
    found = re.fullmatch(r"\x1b\](9;jp: |777;notify;jp;)(.*)\x1b\\", said)
    assert found is not None
    assert found[2].isprintable()
    assert ";" not in found[2]
    assert len(found[2]) <= 200


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "expected"),
    [(LIVE, True), ({**LIVE, "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"TERM": "linux"}, False)],
)
def test_there_are_links_on_a_terminal_that_ignores_what_it_does_not_know(
    environment: dict[str, str], *, expected: bool
) -> None:
    assert look_at(Screen(), Preferences(), environment).links is expected
    assert not look_at(io.StringIO(), Preferences(color="always"), environment).links


def test_a_terminal_that_does_not_control_this_process_is_told_nothing() -> None:
    ours, theirs = os.openpty()
    with open(ours, "rb", buffering=0) as other, open(theirs, "w", encoding="utf-8") as terminal:  # noqa: PTH123 - descriptors
        notify("bell", "done", terminal, LIVE)
        terminal.write("end")
        terminal.flush()

        assert other.read(9) == b"end"
