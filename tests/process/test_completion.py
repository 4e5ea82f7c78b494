"""Completion in the shells that are installed here, at a terminal with a person who presses the Tab key."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import completion_table
from forked import run_jp, search_path
from jp.cli.completion.candidates import Found, bash_lines, lines
from running import TIMEOUT_SECS, home_beside, isolated_environment
from stage import make_workspace
from terminal import at_terminal

SHELLS = {
    "bash": ("bash --norc --noprofile -i", "PS1='ready> '; show() { printf '<%s>' \"$@\"; echo .; }"),
    "zsh": (
        "zsh -f -i",
        "PS1='ready> '; autoload -U compinit; compinit -C -d $COMPLETIONS; show() { printf '<%s>' \"$@\"; echo .; }",
    ),
    "fish": (
        "fish --no-config -i",
        "function fish_prompt; echo 'ready> '; end; function show; printf '<%s>' $argv; echo .; end",
    ),
}
LOAD = {
    "bash": 'eval "$(jp completion bash)"',
    "zsh": 'eval "$(jp completion zsh)"',
    "fish": "jp completion fish | source",
}
HOSTILE = "$(touch owned)`touch owned`;'\"\\ & |<>*?{a,b}~!#[z]%@:=,ü"
TAB, HOME_KEY = "\t", "\x01"

shells = pytest.mark.parametrize(
    "shell",
    [
        pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"no {name} here"))
        for name in SHELLS
    ],
)


def conversation(root: Path, number: int, title: str, **labels: str) -> str:
    digits = 17_800_000_000 + number
    directory = root / ".jp/conversations" / f"{digits}-x"
    directory.mkdir(parents=True)
    metadata = json.dumps({"title": title, "labels": labels})
    (directory / "metadata.json").write_text(metadata, encoding="utf-8")
    return f"jp-c{digits}"


PREPARED: dict[str, str] = {}
"""The variable that names the file in which zsh has its own completions: to find them takes longer than to complete."""


@pytest.fixture(scope="module", autouse=True)
def prepared(tmp_path_factory: pytest.TempPathFactory) -> None:
    if shutil.which("zsh"):
        PREPARED["COMPLETIONS"] = str(tmp_path_factory.mktemp("zsh") / "completions")
        script = 'autoload -U compinit; compinit -u -d "$1"'
        subprocess.run(["zsh", "-f", "-c", script, "zsh", *PREPARED.values()], check=True, timeout=TIMEOUT_SECS)


def environment() -> dict[str, str]:
    return {"PATH": search_path(), "TERM": "xterm", **PREPARED}


def typed(shell: str, line: str, root: Path) -> list[str]:
    """Return the words that a shell passes to a command after a person has typed `line` and pressed Tab."""
    program, setup = SHELLS[shell]
    with at_terminal(f"exec {program}", cwd=root, env=environment()) as terminal:
        terminal.expect(r"[$%>#] ")
        terminal.type(f"{setup}\r")
        terminal.expect("ready> ")
        terminal.type(f"{LOAD[shell]}; echo lo''aded\r")
        terminal.expect("loaded\n")
        terminal.type(f"{line}{TAB}{HOME_KEY}show \r")
        shown = terminal.expect(r"\n[^\n]*<[./]*jp>(?:<[^\n]*>)*\.\n")
        terminal.type("exit\r")
        terminal.finish()
    return re.findall(r"<([^\n]*?)>(?=[<.])", shown)


@shells
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jp conv", ["jp", "conversation"]),
        ("jp c compac", ["jp", "c", "compact"]),
        ("jp query --dry", ["jp", "query", "--dry-run"]),
        ("jp query -m son", ["jp", "query", "-m", "sonnet"]),
        ("jp q --model=openai/gpt-6.2-as", ["jp", "q", "--model=openai/gpt-6.2-astra"]),
        ("jp -c style.code.th", ["jp", "-c", "style.code.theme="]),
        ("jp c show jp-c178000000", ["jp", "c", "show", "jp-c17800000001"]),
        ("jp q --id @ar", ["jp", "q", "--id", "@area=lexer"]),
        ("jp c label add area=", ["jp", "c", "label", "add", "area=lexer"]),
        ("jp q --prompt com", ["jp", "q", "--prompt", "commit"]),
        ("jp q --tool=fs_gr", ["jp", "q", "--tool=fs_grep_files"]),
        ("jp c compact --profile mi", ["jp", "c", "compact", "--profile", "mine"]),
        ("jp q --attach no", ["jp", "q", "--attach", "notes one.md"]),
        ("jp a add gh", ["jp", "a", "add", "gh:"]),
        ("jp keys set anth", ["jp", "keys", "set", "anthropic"]),
        ("jp q --attach=no", ["jp", "q", "--attach=notes one.md"]),
        ("jp q --attach 'no", ["jp", "q", "--attach", "notes one.md"]),
        ('jp q --id "@ar', ["jp", "q", "--id", "@area=lexer"]),
        ("jp q --id '@area=le", ["jp", "q", "--id", "@area=lexer"]),
        ("jp q --label area\\=le", ["jp", "q", "--label", "area=lexer"]),
        ("jp -F js", ["jp", "-F", "json"]),
        ("jp -qF=js", ["jp", "-qF=js"]),
        ("jp c export --to ht", ["jp", "c", "export", "--to", "html"]),
        ("jp q --approve run_command,fs_gr", ["jp", "q", "--approve", "run_command,fs_grep_files"]),
        ("jp q -c providers.llm.ollama.ke", ["jp", "q", "-c", "providers.llm.ollama.keep_alive="]),
        ("jp q -- --dry", ["jp", "q", "--", "--dry"]),
    ],
)
def test_tab_completes_commands_options_and_their_values(
    shell: str, line: str, words: list[str], tmp_path: Path
) -> None:
    root = make_workspace(tmp_path / "w", settings="[conversation.compaction.profiles.mine]\nrules = []\n")
    conversation(root, 1, "The lexer", area="lexer")
    (root / "notes one.md").write_text("x", encoding="utf-8")
    prompts = home_beside(root) / "config/prompts"
    prompts.mkdir(parents=True)
    (prompts / "commit.md").write_text("Write.", encoding="utf-8")

    assert typed(shell, line, root) == words


@shells
def test_a_label_of_a_stranger_reaches_the_command_as_it_is_and_runs_nothing(shell: str, tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w")
    conversation(root, 1, HOSTILE, area=HOSTILE)
    conversation(root, 2, "$(touch owned)", other="\x1b]0;owned\x07\u202e")

    (_, _, _, word) = typed(shell, "jp q --id @area=", root)

    assert word.replace("\\\\", "\\") == f"@area={HOSTILE}".replace("\\\\", "\\")
    assert not list(tmp_path.rglob("owned"))


@shells
def test_titles_are_shown_beside_ids_without_what_steers_a_terminal(shell: str, tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w")
    conversation(root, 1, "The lexer \x1b]0;owned\x07\u202e$(touch owned)")
    conversation(root, 2, "The parser `touch owned`")
    program, setup = SHELLS[shell]

    with at_terminal(f"exec {program}", cwd=root, env=environment()) as terminal:
        terminal.expect(r"[$%>#] ")
        terminal.type(f"{setup}\r")
        terminal.expect("ready> ")
        terminal.type(f"{LOAD[shell]}; echo lo''aded\r")
        terminal.expect("loaded\n")
        terminal.type(f"jp c show jp-c{TAB}")
        terminal.expect("1780000000")
        terminal.type(TAB if shell != "bash" else 2 * TAB)  # it lists when a Tab has changed nothing
        first = terminal.expect(r"The (lexer|parser)")
        terminal.expect("The parser" if first == "The lexer" else "The lexer")
        terminal.type("\x03exit\r\x03exit\r\x04")
        terminal.finish()

    assert "\x1b]0;owned" not in terminal.shown
    assert "\u202e" not in terminal.shown
    assert not list(tmp_path.rglob("owned"))


@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc"))), min_size=1, max_size=20))
@settings(deadline=None, max_examples=25)
def test_bash_reads_what_is_completed_as_the_value_itself(texts: list[str]) -> None:
    values = [text for text in texts if text.isprintable() and text]
    found = Found([(f"x{text}", "") for text in values])
    written = [line.partition("\t")[0] for line in bash_lines(found, ["x"], "x", "x")][1:]
    script = "printf '%s\\0' start " + " ".join(written)

    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, cwd="/", timeout=TIMEOUT_SECS)

    assert done.stdout.decode().split("\0")[1:-1] == [f"x{value}" for value in values]


@given(st.lists(st.tuples(st.text(), st.text()), max_size=10))
def test_a_candidate_is_one_line_of_printable_text(candidates: list[tuple[str, str]]) -> None:
    shown = list(lines(Found(candidates)))[1:]

    assert all(line.count("\t") == 1 and line.replace("\t", "").isprintable() for line in shown)
    assert [line.partition("\t")[0] for line in shown] == [v for v, _ in candidates if v and v.isprintable()]


def ask(root: Path, *words: str, asking: str = "zsh", **env: str) -> list[str]:
    """Return the candidates, each with its description; nothing may be said on stderr."""
    done = run_jp(*words, cwd=root, env={"_JP_COMPLETE": asking, **env})
    assert (done.code, done.stderr) == (0, "")
    return done.stdout.splitlines()[1:]


def test_a_planted_jp_in_the_current_directory_does_not_run(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w")
    (root / "jp").write_text("#!/bin/sh\ntouch owned\n", encoding="utf-8")
    (root / "jp").chmod(0o755)

    assert typed("bash", "./jp conv", root)[0] == "./jp"
    assert not (root / "owned").exists()


def contents(*directories: Path) -> dict[str, bytes]:
    files = (path for directory in directories for path in directory.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


def test_completing_writes_nothing_and_runs_nothing_of_an_untrusted_workspace(tmp_path: Path) -> None:
    settings_text = """
[conversation]
attachments = ["cmd:touch owned"]
[conversation.tools.stranger]
source = "local"
command = "touch owned"
[providers.llm.aliases]
mine = "script/test"
"""
    root = make_workspace(tmp_path / "w", settings=settings_text)
    conversation(root, 1, "The lexer", area="lexer")
    before = contents(root, home_beside(root))

    assert "jp-c17800000001\tThe lexer" in ask(root, "c", "show", "")
    assert "stranger\t" in ask(root, "tool", "show", "")
    assert "mine\tscript/test" in ask(root, "q", "--model", "")
    assert "cmd:touch owned\t" in ask(root, "a", "rm", "")
    assert contents(root, home_beside(root)) == before


def test_of_many_conversations_the_newest_come_and_the_others_by_their_digits(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w")
    ids = [conversation(root, number, f"number {number}") for number in range(120)]

    offered = [line.partition("\t")[0] for line in ask(root, "c", "show", "jp-c")]

    assert offered == [".", "prev", "last", *reversed(ids[20:])]
    assert f"{ids[3]}\tnumber 3" in ask(root, "c", "show", ids[3][:-1])


def test_settings_in_each_format_have_names(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w")
    user = home_beside(root) / "config"
    (user / "config").mkdir(parents=True)
    (user / "config.yaml").write_text("providers: {llm: {aliases: {of-user: script/test}}}\n", encoding="utf-8")
    (user / "config/careful.json").write_text("{}", encoding="utf-8")
    (root / ".jp.json5").write_text("{providers: {llm: {aliases: {here: 'script/test'}}}}", encoding="utf-8")

    assert {"of-user\tscript/test", "here\tscript/test"} < set(ask(root, "q", "-m", ""))
    assert ask(root, "q", "--cfg", "care") == ["careful\t"]


def test_what_is_attached_to_the_active_conversation_completes_its_removal(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w")
    run_jp("query", "--new", "hello", cwd=root)
    run_jp("attachment", "add", "cmd:date", cwd=root)

    assert ask(root, "attachment", "rm", "") == ["cmd://date\t"]
    assert ask(root, "attachment", "rm", "-i", "jp-c1", "") == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".jp/config.toml", b"[["),
        (".jp/config.toml", b"\xff\xfe"),
        (".jp/config.toml", b"providers = 3\nconversation = []"),
        (".jp/.id", b"../../.."),
        (".jp/conversations/17800000001-x/metadata.json", b"{"),
        (".jp/conversations/17800000001-x/metadata.json", b"[" * 100_000),
    ],
)
def test_damaged_files_cost_candidates_and_no_error(name: str, content: bytes, tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w")
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(content)

    assert "sonnet\tanthropic/claude-sonnet-5-5" in ask(root, "q", "-m", "")
    ask(root, "q", "--id", "")
    ask(root, "q", "--no-such-option", "x", "")
    ask(root, "jp q --id ", "", asking="bash")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to somebody else")
def test_a_workspace_of_another_user_offers_nothing_of_it(tmp_path: Path) -> None:
    root = make_workspace(tmp_path / "w")
    conversation(root, 1, "The lexer")
    assert "jp-c17800000001\tThe lexer" in ask(root, "c", "show", "")

    os.chown(root / ".jp", 54_321, 54_321)

    assert ask(root, "c", "show", "") == []


def test_every_command_completes_its_options_from_the_table_that_matches_the_commands(tmp_path: Path) -> None:
    assert completion_table.PATH.read_text(encoding="utf-8") == completion_table.text(), "run `make reference`"


def test_an_executable_jp_foo_is_completed_and_not_one_of_the_current_directory(tmp_path: Path) -> None:
    for directory in ("bin", "w"):
        (tmp_path / directory).mkdir()
        program = tmp_path / directory / f"jp-foo-{directory}"
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)
    path = f"{os.environ['PATH']}:{tmp_path / 'bin'}:.:"

    found = [line.partition("\t")[0] for line in ask(tmp_path / "w", "fo", PATH=path)]

    assert "foo-bin" in found
    assert "foo-w" not in found


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed_and_its_json_holds_it(shell: str, tmp_path: Path) -> None:
    text = run_jp("completion", shell, cwd=make_workspace(tmp_path / "w"))
    as_json = run_jp("completion", shell, "--format", "json", cwd=tmp_path / "w")

    assert json.loads(as_json.stdout) == {"schema": 1, "shell": shell, "script": text.stdout}
    assert text.stderr == ""


def test_the_page_and_the_help_say_how_to_install_it(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/shell.md").read_text(encoding="utf-8")
    help_text = run_jp("completion", "--help", cwd=make_workspace(tmp_path / "w")).stdout

    for command in (LOAD["bash"], LOAD["zsh"], "jp completion fish > ~/.config/fish/completions/jp.fish"):
        assert f"`{command}`" in page
        assert command in help_text


def test_a_zsh_that_finds_the_script_in_its_functions_completes_with_it(tmp_path: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    root = make_workspace(tmp_path / "w")
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "_jp").write_text(run_jp("completion", "zsh", cwd=root).stdout, encoding="utf-8")
    setup = SHELLS["zsh"][1].replace("compinit -C -d $COMPLETIONS", "compinit -u -D")

    with at_terminal("exec zsh -f -i", cwd=root, env=environment()) as terminal:
        terminal.expect(r"[$%>#] ")
        terminal.type(f"fpath=({functions} $fpath); {setup}; echo lo''aded\r")
        terminal.expect("loaded\n")
        terminal.type(f"jp conversation comp{TAB}{HOME_KEY}show \r")
        terminal.expect("<jp><conversation><compact>\\.")
        terminal.type("exit\r")
        terminal.finish()


def test_the_example_of_a_command_of_ones_own_works(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/shell.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    root = make_workspace(tmp_path / "w")
    run_jp("query", "--new", "about the lexer", cwd=root)
    programs = home_beside(root) / ".local/bin"
    programs.mkdir(parents=True)
    path = f"{programs}{os.pathsep}{search_path()}"

    done = subprocess.run(
        ["sh", "-c", script],
        cwd=root,
        env=isolated_environment(home_beside(root), PATH=path),
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_SECS,
        check=True,
    )

    assert "about the lexer" in done.stdout
