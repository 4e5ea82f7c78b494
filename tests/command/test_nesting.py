"""What is nested too deeply, wherever jp reads it: an error in words, or an answer, but no traceback and no defect."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import chat_wire as wire
from forked import prepare, run_jp
from loopback import Loopback, Reply
from running import Result
from stage import copied, logs, make_workspace

DEPTHS = (150, 400, 900, 985, 995, 3_000, 50_000)


def lists(depth: int) -> str:
    return "[" * depth + "1" + "]" * depth


def objects(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def dots(depth: int) -> str:
    return ".".join(["a"] * depth)


def check(done: Result, *codes: int) -> None:
    assert done.code in codes, done
    for sign in ("Traceback", "RecursionError", "recursion depth", "defect of jp"):
        assert sign not in done.stderr


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    "calls",
    ['\n[[reply.calls]]\nname = "t"\n[reply.calls.arguments.{dots}]\nx = 1\n',
     '\ncalls = [{{ name = "t", arguments = {{ x = {lists} }} }}]\n'],
)  # fmt: skip
def test_a_scenario(tmp_path: Path, depth: int, calls: str) -> None:
    scenario = f'[[reply]]\ntext = "x"{calls.format(dots=dots(depth), lists=lists(depth))}\n[[reply]]\ntext = "y"\n'
    root = make_workspace(tmp_path / "work", scenario)

    check(run_jp("query", "--max-cycles", "2", "hi", cwd=root), *([3] if depth > 200 else [0, 3, 14]))


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("settings", ["[template.values]\nx = {lists}\n", "[template.values.{dots}]\nx = 1\n"])
def test_a_configuration(tmp_path: Path, depth: int, settings: str) -> None:
    root = make_workspace(tmp_path / "work", settings=settings.format(lists=lists(depth), dots=dots(depth)))

    for command in (("query", "hi"), ("config", "show"), ("config", "explain", "template"), ("config", "fmt")):
        check(run_jp(*command, cwd=root), 3)


@pytest.mark.parametrize("depth", [depth for depth in DEPTHS if depth < 20_000])
def test_an_option(tmp_path: Path, depth: int) -> None:
    root = make_workspace(tmp_path / "work")
    schema = f'{{"type":"object","properties":{objects(depth)}}}'

    check(run_jp("query", "--cfg", f"template.values.x:={lists(depth)}", "hi", cwd=root), 3)
    check(run_jp("query", "--cfg", f"template.values.{dots(depth)}=1", "hi", cwd=root), 3)
    check(run_jp("config", "get", f"template.values.{dots(depth)}", cwd=root), 1, 2, 3)
    check(run_jp("query", "-p", f"other.x:={lists(depth)}", "hi", cwd=root), 3)
    check(run_jp("query", "--schema", schema, "hi", cwd=root), 2, 9)
    check(run_jp("query", "--schema", "a" + "{b" * depth + "}" * depth, "hi", cwd=root), 2)
    check(run_jp("tool", "run", "fs_list_files", "--arguments", f'{{"x":{lists(depth)}}}', cwd=root), 2)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_schema_in_a_file(tmp_path: Path, depth: int) -> None:
    root = make_workspace(tmp_path / "work", '[[reply]]\ntext = "{}"\n')
    (root / "a.json").write_text('{"anyOf":[' * depth + '{"type":"object"}' + "]}" * depth, encoding="utf-8")
    (root / "b.json").write_text(f'{{"type":"object","properties":{{"x":{objects(depth)}}}}}', encoding="utf-8")
    (root / "c.toml").write_text(f'type = "object"\n[properties.{dots(depth)}]\ntype = "string"\n', encoding="utf-8")

    for name in ("a.json", "b.json", "c.toml"):
        check(run_jp("query", "--schema", f"@{name}", "hi", cwd=root), 0, 1, 2, 3, 9)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one conversation."""
    root = make_workspace(tmp_path_factory.mktemp("answered") / "work")
    prepare(("query", "hello"), cwd=root)
    return root


ENTRIES = {
    "tool_call_request": '"call_id":"c","name":"t","arguments":{{"x":{lists}}}',
    "config_delta": '"delta":{{"template":{{"values":{{"x":{lists}}}}}}}',
    "chat_response": '"message":"x","metadata":{{"x":{lists}}}',
    "unknown": '"x":{lists}',
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("kind", ENTRIES)
def test_a_log(answered: Path, tmp_path: Path, depth: int, kind: str) -> None:
    root = copied(answered, tmp_path / "work")
    (log,) = logs(root)
    fields = ENTRIES[kind].format(lists=lists(depth))
    line = f'{{"id":"zz","type":"{kind}","at":"2026-01-01T00:00:00Z",{fields}}}\n'
    log.write_text(log.read_text(encoding="utf-8") + line, encoding="utf-8")

    for command in (
        ("query", "--id", "last", "hi"),
        ("conversation", "ls"),
        ("conversation", "print", "last"),
        ("conversation", "print", "--format", "json", "last"),
        ("conversation", "compact", "--dry-run", "last"),
        ("conversation", "context", "last"),
        ("conversation", "usage", "last"),
        ("conversation", "fork", "last"),
    ):
        check(run_jp(*command, cwd=root), 0, 1, 3, 12)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", ["metadata.json", "base_config.json"])
def test_the_other_files_of_a_conversation(answered: Path, tmp_path: Path, depth: int, name: str) -> None:
    root = copied(answered, tmp_path / "work")
    (log,) = logs(root)
    (log.parent / name).write_text(f'{{"x":{lists(depth)}}}', encoding="utf-8")

    for command in (("query", "--id", "last", "hi"), ("conversation", "ls"), ("conversation", "show", "last")):
        check(run_jp(*command, cwd=root), 0, 1, 3)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", ["fs_list_files", "take", "nobody"])
def test_what_a_model_says_to_a_tool(tmp_path: Path, depth: int, name: str) -> None:
    settings = """
[conversation.tools.fs_list_files]
enable = true
[conversation.tools.take]
enable = true
source = "local"
command = "echo {{ tool.arguments.x }}"
[conversation.tools.take.parameters.x]
type = "array"
[providers.llm.mine]
base_url = "%s"
"""
    called = wire.answer(wire.call(id="c1", name=name, arguments=f'{{"x":{lists(depth)}}}'), finish="tool_calls")
    with Loopback(Reply(body=called), otherwise=Reply(body=wire.answer(*wire.says("Done.")))) as server:
        root = make_workspace(tmp_path / "work", settings=settings % server.url)
        run_jp("workspace", "trust", "--yes", cwd=root)
        check(run_jp("query", "-m", "mine/m", "--approve-all", "hi", cwd=root), 0)
        check(run_jp("query", "-m", "mine/m", "--id", "last", "more", cwd=root), 0)
    check(run_jp("conversation", "print", "last", cwd=root), 0)
    check(run_jp("conversation", "compact", "--tools", "last", cwd=root), 0, 12)


SERVER = """
import json, sys

deep = "[" * {depth} + "]" * {depth}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    begin = '{{"jsonrpc":"2.0","id":' + json.dumps(asked["id"]) + ","
    match asked["method"]:
        case "initialize":
            version = json.dumps(asked["params"]["protocolVersion"])
            told = '"result":{{"protocolVersion":' + version + ',"capabilities":{{"tools":{{}}}},'
            told += '"serverInfo":{{"name":"d","version":"1"}}}}'
        case "tools/list":
            told = '"result":{{"tools":[{{"name":"deep","description":"d","inputSchema":{{"type":"object"}}}}]}}'
        case "tools/call":
            told = '"result":{{"content":[{{"type":"text","text":"hi"}}],"structuredContent":{{"x":' + deep + "}}}}"
        case _:
            told = '"error":{{"code":-32601,"message":"no"}}'
    print(begin + told + "}}", flush=True)
"""


@pytest.mark.parametrize("depth", DEPTHS)
def test_what_a_server_answers(tmp_path: Path, depth: int) -> None:
    (tmp_path / "server.py").write_text(SERVER.format(depth=depth), encoding="utf-8")
    settings = f"""
[providers.mcp.d]
command = {sys.executable!r}
arguments = [{str(tmp_path / "server.py")!r}]
[conversation.tools.d_deep]
enable = true
source = "mcp.d.deep"
"""
    scenario = """
[[reply]]
when = { contains = "look" }
calls = [{ name = "d_deep", arguments = {} }]
[[reply]]
text = "Noted."
"""
    root = make_workspace(tmp_path / "work", scenario, settings=settings)
    run_jp("workspace", "trust", "--yes", cwd=root)
    done = run_jp("query", "--approve-all", "look", cwd=root)

    check(done, 0)
    assert ("d_deep failed" in done.stderr) == (depth > 199)
