"""A workspace of the original JP as it lies: its settings are read, what jp does not have is named once."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from failures import check_failure
from forked import Result, run_jp
from originals import current, write_original
from running import home_beside
from stage import ECHO

DATA = os.environ.get("JP_TEST_DATA", "")
SHARED = Path(DATA, "jp_workspace", ".jp")
FRAGMENTS = sorted(str(path.relative_to(SHARED)) for path in SHARED.glob("config/**/*.toml")) if DATA else []
MODEL = ("-m", "script/test")
needs_data = pytest.mark.skipif(not DATA, reason="JP_TEST_DATA is not set")

CONFIG = """\
extends = ["config/default.toml", "tools/**/*.toml"]
config_load_paths = [".jp/config"]

[providers.mcp.docs]
type = "stdio"
command = "docs-server"

[plugins.command.ticket]
run = "unattended"

[providers.llm.aliases]
small = { provider = "anthropic", name = "claude-haiku-4-5" }

[conversation.inquiry.assistant.model]
id = "small"

# the cheap one
[conversation.title.generate.model]
id = "small"
parameters.reasoning.effort = "low"

[style.code]
copy_link = "osc8"

[conversation.tools.'*']
run = "ask"
"""
PERSONA = """\
extends = ["skill.toml", "gone.toml"]

[style]
reasoning.display = "timer"
typewriter.text_delay = "1ms"

[assistant]
name = "A reviewer"
model.parameters.reasoning.effort = "high"

[[assistant.instructions]]
title = "Names"
items = ["Be plain."]

[[assistant.instructions.examples]]
good = "count"
bad = "n"
reason = "It is read aloud."
"""
SKILL = """\
[conversation.tools]
vcs_diff = { enable = true, run = "unattended", style.inline_results = "off", style.results_file_link = "off" }
"""


def workspace(tmp_path: Path, config: str = CONFIG, *, name: str = "config.toml", **fragments: str) -> Path:
    """A workspace with these settings and fragments."""
    root = tmp_path / "work"
    (root / ".jp" / "scenarios").mkdir(parents=True)
    (root / ".jp" / "scenarios" / "test.toml").write_text(ECHO, encoding="utf-8")
    (root / ".jp" / "config").mkdir()
    (root / ".jp" / name).write_text(config, encoding="utf-8")
    for fragment, text in {"persona": PERSONA, "skill": SKILL, **fragments}.items():
        (root / ".jp" / "config" / f"{fragment}.toml").write_text(text, encoding="utf-8")
    return root


def test_the_commands_of_the_page_work_in_a_workspace_of_the_original(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    write_original(root / ".jp" / "conversations" / "17662304290-a", current())
    page = (Path(__file__).parents[2] / "docs" / "from-jp.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sh\ncd my-jp-workspace\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    typed = [shlex.split(line, comments=True) for line in block.splitlines()]

    further = {"query": MODEL, "workspace": ("--yes",)}  # nobody is asked here, and there is no key
    found = {" ".join(words): run_jp(*words[1:], *further.get(words[1], ()), cwd=root) for words in typed}

    assert len(found) > 3
    assert {line: result.stderr for line, result in found.items() if result.code} == {}


def own_settings(root: Path, text: str) -> None:
    directory = home_beside(root) / "config"
    directory.mkdir(exist_ok=True)
    (directory / "config.toml").write_text(text, encoding="utf-8")


def test_a_query_goes_on_and_one_note_names_what_is_ignored(tmp_path: Path) -> None:
    root = workspace(tmp_path)

    result = run_jp("query", *MODEL, "hi", cwd=root)

    assert (result.code, result.stdout) == (0, "You said: hi\n")
    notes = [line for line in result.stderr.splitlines() if "read differently" in line]
    ignored = "conversation.inquiry, conversation.title.generate.model.parameters, plugins, style.code.copy_link"
    missing = "the missing file 'config/default.toml'"
    remedies = "`jp config show --ignored` lists them, `jp config import` rewrites the files"
    assert notes == [
        f"note: settings of the original JP, ignored or read differently: {ignored}, {missing}; {remedies}"
    ]


def test_a_fragment_adds_to_the_prompt_and_its_missing_tools_are_named(tmp_path: Path) -> None:
    root = workspace(tmp_path)

    result = run_jp("query", *MODEL, "-c", "persona", "--dry-run", "-F", "json", "hi", cwd=root)

    assert result.code == 0
    assert "<good>\\ncount\\n</good>" in result.stdout
    assert "2 missing files" in result.stderr
    assert "conversation.tools.*.style.results_file_link" in result.stderr
    assert "tools that files of this workspace enable are not here: 'vcs_diff'" in result.stderr


def test_a_mistyped_name_of_a_tool_is_still_an_error(tmp_path: Path) -> None:
    root = workspace(tmp_path, skill="[conversation.tools.fs_raed_file]\nenable = true\n")

    check_failure(
        run_jp("query", *MODEL, "-c", "skill", "hi", cwd=root), 3, "unknown tool 'fs_raed_file'", "'fs_read_file'"
    )


def test_each_is_listed_with_file_and_line(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    file, persona = root / ".jp" / "config.toml", root / ".jp" / "config" / "persona.toml"

    listed = run_jp("config", "show", "--ignored", "-c", "persona", cwd=root)
    data = json.loads(run_jp("config", "show", "--ignored", "-F", "json", cwd=root).stdout)

    assert (listed.code, listed.stderr) == (0, "")
    assert listed.stdout.splitlines()[:3] == [
        f'{file}, line 1: extends.0 = "config/default.toml" (there is no such file)',
        f'{file}, line 8: plugins = {{"command":{{"ticket":{{"run":"unattended"}}}}}} (jp does not have it)',
        f'{file}, line 14: conversation.inquiry = {{"assistant":{{"model":{{"id":"small"}}}}}} (jp does not have it)',
    ]
    assert f'{persona}, line 4: style.reasoning.display = "timer" (read as `hidden`)' in listed.stdout
    assert data["unsupported"][1] == {
        "key": "plugins",
        "value": {"command": {"ticket": {"run": "unattended"}}},
        "reason": "jp does not have it",
        "origin": f"the workspace's file {file}",
        "file": str(file),
        "line": 8,
    }


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("config.json", '{"assistant": {\n"name": "x", "model": {"id": "script/test"}}}', 2),
        ("config.json5", "// mine\n{assistant: {name: 'x', model: {id: 'script/test'}}}", 2),
        ("config.yaml", "assistant:\n  model: {id: script/test}\n  name: x\n", 3),
        ("config.yml", "assistant: {model: {id: script/test}, name: x}\n", 1),
    ],
)
def test_settings_may_be_in_any_format_that_the_original_reads(name: str, text: str, line: int, tmp_path: Path) -> None:
    root = workspace(tmp_path, text, name=name)

    asked = run_jp("query", "hi", cwd=root)
    listed = run_jp("config", "show", "--ignored", cwd=root)
    paths = run_jp("config", "path", cwd=root)
    refused = run_jp("config", "set", "user.name=Ada", cwd=root)

    assert (asked.code, asked.stdout) == (0, "You said: hi\n")
    assert listed.stdout == f'{root / ".jp" / name}, line {line}: assistant.name = "x" (jp does not have it)\n'
    assert str(root / ".jp" / name) in paths.stdout
    check_failure(refused, 3, "jp writes only TOML", f"jp config import {root / '.jp' / name}")


@pytest.mark.parametrize("name", ["config.json", "config.json5", "config.yaml", "config.yml", "config.toml"])
def test_a_stranger_loosens_nothing_in_any_format(name: str, tmp_path: Path) -> None:
    text = json.dumps({"conversation": {"tools": {"fs_delete_file": {"enable": "on", "run": "unattended"}}}})
    if name == "config.toml":
        text = '[conversation.tools.fs_delete_file]\nenable = "on"\nrun = "unattended"\n'
    root = workspace(tmp_path, text, name=name)

    result = run_jp("query", *MODEL, "hi", cwd=root)
    shown = json.loads(run_jp("config", "show", "-F", "json", cwd=root).stdout)

    assert "ignored until trusted: conversation.tools.fs_delete_file.run = 'unattended'" in result.stderr
    assert shown["config"]["conversation"]["tools"]["fs_delete_file"].get("run") != "unattended"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[providers.mcp.docs]\ncommand = "x"\n[providers.mcp.docs.checksum]\nvalue = "a"\n', "line 3, column 1: "),
        ('[providers.llm.openai]\nbase_url_env = "MY_PROXY"\n', "line 2, column 1: "),
        ('[assistant]\nnmae = "x"\nname = "x"\n', "unknown key 'assistant.nmae'"),
    ],
)
def test_what_must_not_be_ignored_stops_a_query(text: str, message: str, tmp_path: Path) -> None:
    root = workspace(tmp_path, text)

    check_failure(run_jp("query", *MODEL, "hi", cwd=root), 3, message, ".jp/config.toml'")


def test_a_tool_that_nobody_is_offered_needs_no_trust(tmp_path: Path) -> None:
    definition = '[conversation.tools.build]\nsource = "local"\ncommand = "make"\nenable = true\n'
    root = workspace(tmp_path, definition)
    own_settings(root, '[conversation.tools.build]\nrun = "ask"\n')

    unused = run_jp("query", "--new", *MODEL, "hi", cwd=root)
    own_settings(root, '[conversation.tools.build]\nrun = "ask"\nenable = true\n')
    used = run_jp("query", "--new", *MODEL, "hi", cwd=root)
    own_settings(root, '[conversation.tools.build]\nrun = "ask"\n')
    named = run_jp("query", "--new", *MODEL, "--tool=build", "hi", cwd=root)

    assert (unused.code, unused.stdout) == (0, "You said: hi\n")
    check_failure(used, 3, "needs your trust: conversation.tools.build.command = 'make'")
    check_failure(named, 3, "needs your trust: conversation.tools.build")


def test_a_note_names_no_tool_that_would_not_be_offered(tmp_path: Path) -> None:
    tool = '[conversation.tools.{}]\nsource = "local"\ncommand = "make"\nenable = {}\n'
    root = workspace(tmp_path, tool.format("unused", "false") + tool.format("used", "true"))

    noted = run_jp("query", *MODEL, "hi", cwd=root).stderr
    shown = run_jp("config", "show", cwd=root).stderr

    assert "conversation.tools.used.command" in noted
    assert "conversation.tools.unused" not in noted
    assert "conversation.tools.unused.command" in shown


ACCOUNTS = """\
[providers.llm.anthropic]
beta_headers = ["a"]
[providers.mcp.used]
command = "used-server"
[providers.mcp.unused]
command = "unused-server"
[conversation.title.generate]
model = "haiku"
[conversation.tools.look_up]
source = "mcp.used.look_up"
enable = {}
"""


def test_a_note_names_no_server_and_no_account_that_a_query_does_not_use(tmp_path: Path) -> None:
    root = workspace(tmp_path, ACCOUNTS.replace("{}", "true"))

    offered = run_jp("query", *MODEL, "hi", cwd=root).stderr
    (root / ".jp" / "config.toml").write_text(ACCOUNTS.replace("{}", "false"), encoding="utf-8")
    plain = run_jp("query", *MODEL, "hi", cwd=root)
    titled = run_jp("query", *MODEL, "--new", "-c", "conversation.title.generate.auto=true", "hi", cwd=root)
    shown = run_jp("config", "show", cwd=root).stderr

    assert ("providers.mcp.used" in offered, "providers.mcp.unused" in offered) == (True, False)
    assert (plain.code, plain.stdout, plain.stderr) == (0, "You said: hi\n", "")
    assert "conversation.title.generate.model = 'haiku'" in titled.stderr
    assert "providers.llm.anthropic.beta_headers" in titled.stderr
    assert all(key in shown for key in ("beta_headers", "mcp.used", "mcp.unused", "title.generate.model"))


def shared(tmp_path: Path) -> Path:
    """A copy of the shared workspace, with a model that plays a scenario."""
    root = tmp_path / "work"
    shutil.copytree(SHARED, root / ".jp", copy_function=shutil.copyfile)
    (root / ".jp" / "scenarios").mkdir()
    (root / ".jp" / "scenarios" / "test.toml").write_text(ECHO, encoding="utf-8")
    return root


def check_goes_on(result: Result) -> None:
    """See that only an attachment that runs a command, or a file that is not in the shared data, stops a query."""
    if result.code:
        said = (
            "needs your trust: conversation.attachments = 'cmd:" in result.stderr or "there is no file" in result.stderr
        )
        assert said, result.stderr
    else:
        assert result.stdout == "You said: hi\n"


@needs_data
def test_the_shared_settings_are_read(tmp_path: Path) -> None:
    root = shared(tmp_path)

    result = run_jp("query", *MODEL, "hi", cwd=root)

    assert (result.code, result.stdout) == (0, "You said: hi\n")
    assert result.stderr.count("ignored or read differently: ") == 1


@needs_data
@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_each_shared_fragment_is_read(fragment: str, tmp_path: Path) -> None:
    root = shared(tmp_path)

    shown = run_jp("config", "show", "--cfg", f".jp/{fragment}", cwd=root)
    asked = run_jp("query", *MODEL, "--cfg", f".jp/{fragment}", "hi", cwd=root)

    assert shown.code == 0
    check_goes_on(asked)


@needs_data
def test_all_shared_fragments_are_read_together(tmp_path: Path) -> None:
    root = shared(tmp_path)
    options = [option for fragment in FRAGMENTS for option in ("--cfg", f".jp/{fragment}")]

    shown = run_jp("config", "show", *options, cwd=root)
    check_goes_on(run_jp("query", *MODEL, *options, "hi", cwd=root))

    assert shown.code == 0


@needs_data
def test_the_shared_settings_are_rewritten_so_that_nothing_is_ignored(tmp_path: Path) -> None:
    root = shared(tmp_path)
    options = [option for fragment in FRAGMENTS for option in ("--cfg", f".jp/{fragment}")]
    before = json.loads(run_jp("config", "show", *options, "-F", "json", cwd=root).stdout)

    written = run_jp("config", "import", cwd=root)
    after = json.loads(run_jp("config", "show", *options, "-F", "json", cwd=root).stdout)
    listed = json.loads(run_jp("config", "show", "--ignored", *options, "-F", "json", cwd=root).stdout)
    again = run_jp("config", "import", cwd=root)

    assert written.code == 0
    assert after == before
    assert {each["key"].partition(".")[0] for each in listed["unsupported"]} == {"extends"}
    assert again.stdout == "nothing to rewrite\n"


@needs_data
def test_the_shared_conversations_go_on_beside_the_shared_settings(tmp_path: Path) -> None:
    root = shared(tmp_path)
    conversations = sorted(Path(DATA, "jp_conversations").iterdir())
    for source in conversations:
        shutil.copytree(source, root / ".jp" / "conversations" / source.name, copy_function=shutil.copyfile)
    streams = {path: path.read_bytes() for path in root.glob(".jp/conversations/*/events.json")}

    for source in conversations:
        name = ("--id", f"jp-c{source.name.partition('-')[0]}")
        files = sorted(path for path in root.rglob("*") if path.is_file())
        planned = run_jp("query", *MODEL, *name, "--dry-run", "hi", cwd=root)
        assert (planned.code, sorted(path for path in root.rglob("*") if path.is_file())) == (0, files)
        result = run_jp("query", *MODEL, *name, "hi", cwd=root)

        assert (result.code, result.stdout) == (0, "You said: hi\n"), result.stderr
    assert len(streams) == len(conversations)
    assert {path: path.read_bytes() for path in streams} == streams
