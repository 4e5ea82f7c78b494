"""The words of the documentation, of help texts, and of the docstrings and comments of rewritten packages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from jp.cli.command_line.commands import ROOT as COMMANDS
from jp.cli.command_line.commands import Command, Group, walk
from jp.cli.command_line.help import OPTIONS
from jp.cli.command_line.loading import LoadedCommand
from jp.context.summary_fold import PREFACE, TITLES
from jp.context.summary_schema import SENT_DESCRIPTIONS
from jp.provider.grammar import ABSENT
from parsed import parsed

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "jp"

REWRITTEN = (
    *("app", "attachment", "cli", "compaction", "config", "context", "conversation", "mcp", "process", "provider"),
    *("render", "tool", "turn", "workspace"),
    *("__main__.py", "entry_points.py", "errors.py", "file_access.py", "remedies.py", "suggestions.py", "tls.py"),
)
"""Packages and modules below `src/jp` whose docstrings and comments are held to the list."""

BANNED = re.compile(
    r"\b(?:"
    r"mend(?:s|ed|ing)?|anew|for good|stands? (?:in )?for|stands in|stood for|standing for|by itself|dear"
    r"|told of|tells? of"
    r"|(?:left|leaves?|leaving) (?:\w+ ){0,3}?out|as (?:it|they) stands?|nothing had come|all the same"
    r"|whoever|anybody"
    r"|(?:summar|recogn|organ)is(?:e|es|ed|ing|ation)|behaviours?|licen[c]e|honour\w*|colours?|labelled|misspelt"
    r")\b",
    re.IGNORECASE,
)
OPENINGS = re.compile(r"^(?:What|When|Why|How|Who|Whom|Whose|Where|Which|Whether)\b")
FROZEN = frozenset({ABSENT["description"], PREFACE, *(title for title, _ in TITLES), *SENT_DESCRIPTIONS.values()})
"""Texts whose bytes are in logs and in the caches of providers: another word there needs a new version of a format."""

NAMES = ("Git ",)
"""Names with which a hint may begin."""

NOT_YET: tuple[str, ...] = ()
"""Pages that are not rewritten yet."""

PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{page.name}" for page in ROOT.glob("docs/*.md")))
NOT_PROSE = re.compile(
    r"<!-- keys:.*?<!-- end of keys -->|^(```+|~~~+).*?^\1[`~]*$|(`+)(?!`).+?(?<!`)\2(?!`)|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)


def blanked(match: re.Match[str]) -> str:
    """Return as many line breaks as the match has, so that line numbers stay right."""
    return "\n" * match[0].count("\n") or " x "


def prose(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    if page == "CHANGELOG.md":
        text = "## Unreleased" + text.partition("## Unreleased")[2].partition("\n## ")[0]
    return NOT_PROSE.sub(blanked, text)


def banned(text: str) -> list[str]:
    return [
        f"{number}: {found[0]}" for number, line in enumerate(text.splitlines(), 1) for found in BANNED.finditer(line)
    ]


def sayings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every docstring and comment."""
    yield from parsed(source).docstrings
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def faults(source: str) -> list[str]:
    return [
        f"{line}: {found[0]}"
        for line, text in sayings(source)
        for pattern in (BANNED, OPENINGS)
        for found in pattern.finditer(NOT_PROSE.sub(blanked, text))
    ]


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of every literal with a space in it that is no docstring."""
    yield from ((line, text) for line, text in parsed(source).texts if " " in text)


def first_and_last(node: ast.expr | None) -> tuple[str, str]:
    """Return the literal beginning and end of a text, empty where they are computed."""
    match node:
        case ast.Constant(value=str(text)):
            return text, text
        case ast.JoinedStr(values=[first, *_, last]):
            return first_and_last(first)[0], first_and_last(last)[1]
        case ast.Call(func=ast.Name(id="phrase"), args=[first, *_, last]):
            return first_and_last(first)[0], first_and_last(last)[1]
        case _:
            return "", ""


def hints(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the beginning and the end of every hint."""
    for node in ast.walk(ast.parse(source)):
        found: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            found = [keyword.value for keyword in node.keywords if keyword.arg == "hint"]
        elif isinstance(node, ast.Assign) and any("hint" in ast.unparse(target).lower() for target in node.targets):
            found = [node.value]
        for value in found:
            for branch in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
                yield getattr(branch, "lineno", 0), *first_and_last(branch)


def nodes(group: Group) -> Iterator[Command | Group]:
    for child in group.commands:
        yield child
        if isinstance(child, Group):
            yield from nodes(child)


def help_texts() -> Iterator[tuple[str, str]]:
    """Yield the name and the help of every command and option, those of all commands included; without examples."""
    yield from (("jp " + forms, meaning) for forms, meaning in OPTIONS)
    for path, command in walk(COMMANDS, above=("jp",)):
        page = LoadedCommand(command, path).page()
        name = " ".join(path)
        yield name, page.text.partition("Examples:")[0]
        yield from ((f"{name} {forms}", meaning) for _, rows in page.sections for forms, meaning in rows)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_has_no_banned_word(page: str) -> None:
    if page in NOT_YET:
        pytest.skip("not rewritten yet")

    assert banned(prose(page)) == []


def test_docstrings_and_comments_of_rewritten_packages_have_no_banned_word_or_opening() -> None:
    patterns = [name if name.endswith(".py") else f"{name}/**/*.py" for name in REWRITTEN]
    paths = [path for pattern in patterns for path in sorted(SOURCES.glob(pattern))]

    assert {str(path): found for path in paths if (found := faults(path.read_text(encoding="utf-8")))} == {}


def test_messages_and_instructions_to_models_have_no_banned_word() -> None:
    found = {
        f"{path.relative_to(SOURCES)}:{line}": faulty
        for path in sorted(SOURCES.rglob("*.py"))
        for line, text in texts(path.read_text(encoding="utf-8"))
        if (faulty := [match[0] for match in BANNED.finditer(text)]) and text not in FROZEN
    }

    assert found == {}


def test_a_hint_begins_in_lower_case_and_ends_without_a_period() -> None:
    count, faulty = 0, list[str]()
    for path in sorted(SOURCES.rglob("*.py")):
        for line, first, last in hints(path.read_text(encoding="utf-8")):
            count += 1
            if (re.match(r"[A-Z][a-z]|A ", first) and not first.startswith(NAMES)) or re.search(r"(?<!\.)\.$", last):
                faulty.append(f"{path.relative_to(SOURCES)}:{line}: {first[:40]}")

    assert count > 300
    assert faulty == []


def test_the_help_of_a_command_or_an_option_has_no_banned_word_or_opening() -> None:
    found = {
        name: faulty
        for name, text in help_texts()
        if (faulty := [*banned(NOT_PROSE.sub(blanked, text)), *OPENINGS.findall(text)])
    }

    assert found == {}


def test_the_line_about_a_command_is_a_phrase_of_at_most_60_characters() -> None:
    lines = [node.summary for node in nodes(COMMANDS)]

    assert lines
    assert [line for line in lines if len(line) > 60 or OPENINGS.match(line) or line.endswith(".")] == []


def test_every_option_and_argument_has_a_phrase_without_a_final_period_as_help() -> None:
    phrases = [*OPTIONS]
    for path, command in walk(COMMANDS, above=("jp",)):
        page = LoadedCommand(command, path).page()
        phrases += [(f"{' '.join(path)} {forms}", meaning) for _, rows in page.sections for forms, meaning in rows]

    assert len(phrases) > 150
    faulty = [name for name, meaning in phrases if not meaning or re.sub(r" \[default: .*\]$", "", meaning)[-1] == "."]
    assert faulty == []


def test_no_line_of_help_is_wider_than_a_terminal_of_80_columns() -> None:
    for path, command in walk(COMMANDS, above=("jp",)):
        text = LoadedCommand(command, path).page().render()
        assert [line for line in text.splitlines() if len(line) > 80] == [], path


def test_the_list_finds_words_in_prose_docstrings_and_comments_and_not_in_code() -> None:
    page = "It is made anew.\n`anew`\n```sh\nmend\n```\nIt is Left Out.\n"
    source = '"""What it does."""\nanew = "anew"  # made anew\n'

    assert banned(NOT_PROSE.sub(blanked, page)) == ["1: anew", "6: Left Out"]
    assert faults(source) == ["1: What", "2: anew"]
