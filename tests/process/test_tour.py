"""The pages that a newcomer follows, typed as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from forked import search_path
from loopback import Loopback, Reply, sse
from terminal import at_terminal

ROOT = Path(__file__).parents[2]
SGR = re.compile(r"\x1b\[[0-9;]*m")
BLOCK = re.compile(r"^```(console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "@@ command {} @@"
ELSEWHERE = ("make ", "pipx ", "export PATH=")


class Typed(NamedTuple):
    """A command, and what is said to come of it."""

    command: str
    output: str


def console(text: str) -> list[Typed]:
    """The commands of a block in which they stand behind `$`, and their further lines behind `>`."""
    typed: list[Typed] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            typed.append(Typed(line[2:], ""))
        elif line.startswith(">") and not typed[-1].output:
            typed[-1] = Typed(f"{typed[-1].command}\n{line[2:]}", "")
        else:
            typed[-1] = Typed(typed[-1].command, f"{typed[-1].output}{line}\n")
    return typed


def commands_of(page: str) -> list[Typed]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        typed
        for kind, body in BLOCK.findall(text)
        for typed in (console(body) if kind == "console" else [Typed(body, "…\n")])
        if not typed.command.startswith(ELSEWHERE)
    ]


def expected(output: str) -> re.Pattern[str]:
    """What a page shows: `…` is anything within a line, and alone in one any number of lines."""
    lines = ["(?:.*\n)*" if line == "…" else f"{re.escape(line).replace('…', '.*')}\n" for line in output.splitlines()]
    return re.compile("".join(lines))


def played(typed: list[Typed], cwd: Path, environment: dict[str, str]) -> list[str]:
    """What stands on the terminal after each command."""
    script = "".join(f"{command}\necho '{MARK.format(number)}'\n" for number, (command, _) in enumerate(typed))
    # A status is looked at by the next command: the marker must not change it.
    script = re.sub(r"^echo '(@@ .*)'$", r"status=$?; echo '\1'; (exit $status)", script, flags=re.MULTILINE)
    (cwd / "tour.sh").write_text(script, encoding="utf-8")
    with at_terminal("exec sh tour.sh", cwd=cwd, env=environment) as terminal:
        for number in range(len(typed)):
            terminal.expect(MARK.format(number))
        terminal.finish()
    shown = SGR.sub("", terminal.stays)
    return re.split(r"@@ command \d+ @@\n", shown)[: len(typed)]


def test_getting_started_works_as_it_stands(tmp_path: Path) -> None:
    typed = commands_of("docs/getting-started.md")

    for (command, output), shown in zip(
        typed, played(typed, tmp_path, {"PATH": search_path(), "JP_SESSION": "tour"}), strict=True
    ):
        assert expected(output).fullmatch(shown), f"{command}\n{shown}"


def said(text: str) -> Reply:
    head: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
    return Reply(
        body=sse(
            {"type": "message_start", "message": {**head, "usage": {"input_tokens": 5, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
            {"type": "message_stop"},
        )
    )


@pytest.mark.parametrize("program", ["jq"])
def test_the_commands_of_the_readme_work_with_a_model(program: str, tmp_path: Path) -> None:
    typed = [
        Typed(item.command.replace("ANTHROPIC_API_KEY=…", "ANTHROPIC_API_KEY=sk-test-0123456789"), item.output)
        for item in commands_of("README.md")
    ]
    for path in ("src/a.py", "src/main.rs", "build.log"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("content\n", encoding="utf-8")
    # Not everybody has it; what it is given is what counts here.
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, body in ((program, "cat"), ("git", "echo diff")):
        (programs / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (programs / name).chmod(0o755)

    with Loopback(otherwise=lambda _: said('{"broken":true}')) as server:
        base = {
            "JP_CFG_PROVIDERS_LLM_ANTHROPIC_BASE_URL": server.url,
            "JP_CFG_ASSISTANT_MODEL_ID": "anthropic/claude-haiku-4-5",
            "ANTHROPIC_API_KEY": "sk-test-0123456789",
            "PATH": search_path(),
            "JP_SESSION": "tour",
        }
        setup = Typed(f'PATH="{programs}:$PATH"; set -e', "")
        shown = played([setup, *typed], tmp_path, base)

    assert len(server.requests) >= 4
    assert not [text for text in shown if "error:" in text]


PAGES = sorted(str(page.relative_to(ROOT)) for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))


@pytest.mark.parametrize("page", PAGES)
def test_every_link_between_pages_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in target]

    assert [target for target in targets if not ((ROOT / page).parent / target).exists()] == []
