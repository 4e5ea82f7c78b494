"""MCP servers that are not ours: tools, resources, links, pictures, errors, questions, and their sudden end."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from foreign_server import PYTHON, ROOT
from jp.config.entries import McpServerConfig
from jp.conversation.entries import ToolCallRequest, ToolCallResponse
from jp.conversation.resource import Block, ImageBlock, ResourceBlock, ResourceLink, TextBlock
from jp.mcp.connection import Connection
from jp.mcp.definitions import Elicitation, Form, FormAnswer, RefusalError, ServerError, UrlRequest
from mcp_connections import Heard, calling, with_server
from mcp_server import PNG
from running import home_beside, run_jp
from stage import make_workspace, only_log

pytestmark = pytest.mark.foreign

NODE = ROOT / ".venv-foreign" / "node" / "node_modules" / "@modelcontextprotocol"


def python_server(name: str) -> McpServerConfig:
    program = PYTHON.with_name(name)
    if not program.exists():
        pytest.skip(f"there is no {name} in .venv-foreign: `make test-foreign` installs one")
    return McpServerConfig(command=str(program))


def node_server(name: str, *arguments: str) -> McpServerConfig:
    script = NODE / name / "dist" / "index.js"
    if shutil.which("node") is None or not script.exists():
        pytest.skip(f"there is no Node.js, or no {name} in .venv-foreign: `make test-foreign` installs the latter")
    return McpServerConfig(command="node", arguments=(str(script), *arguments))


def words(content: tuple[Block, ...]) -> str:
    return "\n".join(block.text or "" for block in content if isinstance(block, TextBlock))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = make_workspace(tmp_path / "work", SCENARIO)
    (root / "a.txt").write_text("first line\n", encoding="utf-8")
    for command in ("init -q", "add a.txt", "-c user.name=A -c user.email=a@b commit -qm begin"):
        subprocess.run(["git", *command.split()], cwd=root, check=True)
    return root


SCENARIO = """
[[reply]]
when = { contains = "look" }
times = 1
calls = [
  { name = "git_log", arguments = { repo_path = "." } },
  { name = "git_show", arguments = { repo_path = ".", revision = "no-such" } },
  { name = "time_convert_time", arguments = { source_timezone = "UTC", time = "12:00", target_timezone = "Japan" } },
]

[[reply]]
text = "I looked."
"""


def configure(root: Path, **servers: McpServerConfig) -> None:
    """Have the user offer all tools of these servers."""
    sections: list[str] = []
    for name, server in servers.items():
        arguments = json.dumps(list(server.arguments))
        sections.append(f'[providers.mcp.{name}]\ncommand = "{server.command}"\narguments = {arguments}')
        sections.append(f'[conversation.tools.{name}]\nsource = "mcp.{name}.*"\nenable = true\nrun = "unattended"')
    config = home_beside(root) / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text("\n".join(sections), encoding="utf-8")


def results(root: Path) -> dict[str, tuple[str, bool]]:
    """What came of each call, by the tool's name."""
    names = {entry.id: entry.name for entry in only_log(root) if isinstance(entry, ToolCallRequest)}
    responses = [entry for entry in only_log(root) if isinstance(entry, ToolCallResponse)]
    return {names[response.request]: (words(response.content), response.is_error) for response in responses}


def test_a_turn_with_two_servers_and_the_next_one_that_remembers_them(repository: Path) -> None:
    configure(repository, git=python_server("mcp-server-git"), time=python_server("mcp-server-time"))

    first = run_jp("query", "--new", "look", cwd=repository)
    second = run_jp("query", "--id", "last", "and now?", cwd=repository)

    assert (first.code, first.stdout) == (0, "I looked.\n"), first
    found = results(repository)
    assert {name: is_error for name, (_, is_error) in found.items()} == {
        "git_log": False,
        "git_show": True,
        "time_convert_time": False,
    }
    assert "begin" in found["git_log"][0]
    assert "no-such" in found["git_show"][0]
    assert "21:00" in found["time_convert_time"][0]
    assert first.stderr.count("note: starting the MCP server") == 2
    assert (second.code, second.stdout, second.stderr) == (0, "I looked.\n", "")


def test_files_are_read_within_bounds_that_the_server_sets(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hé\n", encoding="utf-8")
    (tmp_path / "a.png").write_bytes(base64.b64decode(PNG))

    async def work(connection: Connection, _: Heard) -> None:
        text = await connection.call(calling("read_text_file", path=str(tmp_path / "a.txt")))
        assert "hé" in words(text.content)
        picture = await connection.call(calling("read_media_file", path=str(tmp_path / "a.png")))
        assert any(isinstance(block, ImageBlock) and block.mime_type == "image/png" for block in picture.content)
        outside = await connection.call(calling("read_text_file", path="/etc/hostname"))
        assert outside.is_error
        hints = (await connection.listing()).tool("write_file")
        assert hints is not None
        assert "may overwrite or delete" in hints.hints.sentences

    with_server(work, tmp_path, node_server("server-filesystem", str(tmp_path)))


def test_all_kinds_of_content_arrive(tmp_path: Path) -> None:
    async def work(connection: Connection, _: Heard) -> None:
        linked = (await connection.call(calling("get-resource-links", count=3))).content
        uris = [block.resource.uri for block in linked if isinstance(block, ResourceBlock)]
        assert uris == [f"mcp+s+demo://resource/dynamic/{kind}" for kind in ("blob/1", "text/2", "blob/3")]
        many = (await connection.call(calling("get-resource-links", count=6))).content
        assert sum(isinstance(block, ResourceLink) for block in many) == 6
        embedded = (await connection.call(calling("get-resource-reference", resourceType="Text", resourceId=1))).content
        (resource,) = [block.resource for block in embedded if isinstance(block, ResourceBlock)]
        assert (resource.uri, resource.mime_type) == ("mcp+s+demo://resource/dynamic/text/1", "text/plain")
        weather = await connection.call(calling("get-structured-content", location="Chicago"))
        assert isinstance(json.loads(words(weather.content)), Mapping)
        picture = await connection.call(calling("get-tiny-image"))
        assert any(isinstance(block, ImageBlock) for block in picture.content)
        (features,) = await connection.read("demo://resource/static/document/features.md")
        assert (features.mime_type, (features.text or "")[:1]) == ("text/markdown", "#")
        assert len(await connection.resources()) > 3

    with_server(work, tmp_path, node_server("server-everything", "stdio"))


def test_a_server_asks_tells_how_far_it_is_and_refuses(tmp_path: Path) -> None:
    shown: list[str] = []
    asked: list[Elicitation] = []

    async def elicit(elicitation: Elicitation) -> FormAnswer:
        asked.append(elicitation)
        is_form = isinstance(elicitation, Form)
        return FormAnswer(action="accept", values={"name": "Ada"}) if is_form else FormAnswer(action="decline")

    async def work(connection: Connection, _: Heard) -> None:
        await connection.call(calling("trigger-long-running-operation", progress=shown.append, duration=0.2, steps=2))
        form = await connection.call(calling("trigger-elicitation-request", elicit=elicit))
        assert "Name: Ada" in words(form.content)
        await connection.call(calling("trigger-url-elicitation", elicit=elicit, url="https://example.com"))
        assert (await connection.call(calling("get-sum", a="x"))).is_error
        with pytest.raises(RefusalError):
            await connection.read("demo://no-such")

    with_server(work, tmp_path, node_server("server-everything", "stdio"))

    assert shown == ["1 of 2", "2 of 2"]
    assert [type(elicitation) for elicitation in asked] == [Form, UrlRequest]


def test_a_server_that_is_killed_in_mid_call_fails_that_call_and_the_next(tmp_path: Path) -> None:
    server = node_server("server-everything", "stdio")
    number = tmp_path / "pid"
    line = f"echo $$ > {number}; exec node {' '.join(server.arguments)}"
    wrapped = McpServerConfig(command="sh", arguments=("-c", line))
    running = anyio.Event()

    async def work(connection: Connection, heard: Heard) -> None:
        await connection.listing()
        errors: list[str] = []

        async def call() -> None:
            long = calling("trigger-long-running-operation", progress=lambda _: running.set(), duration=60, steps=600)
            with pytest.raises(ServerError) as error:
                await connection.call(long)
            errors.append(error.value.message)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await running.wait()
            os.kill(int(number.read_text(encoding="utf-8")), signal.SIGKILL)
        with pytest.raises(ServerError):
            await connection.call(calling("echo", message="x"))
        assert errors == heard.failures
        assert errors[0].startswith("the MCP server 's' ended with exit code 137 (SIGKILL)")

    with_server(work, tmp_path, wrapped)


def test_changes_of_a_list_are_heard_in_the_newest_version_of_the_protocol(tmp_path: Path) -> None:
    script = str(Path(__file__).with_name("sdk_server.py"))

    async def work(connection: Connection, heard: Heard) -> None:
        await connection.listing()
        await connection.call(calling("grow"))
        await heard.listed_again.wait()
        assert [[tool.name for tool in listing.tools] for listing in heard.listings] == [["grow"], ["grow", "grown"]]

    with_server(work, tmp_path, McpServerConfig(command=sys.executable, arguments=(script,), protocol="discover"))


def test_a_server_over_http_works_like_one_on_a_pipe(tmp_path: Path) -> None:
    server = node_server("server-everything", "streamableHttp")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    environment = {**os.environ, "PORT": port}
    with subprocess.Popen(
        ["node", *server.arguments], env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stderr is not None
            while b"listening" not in process.stderr.readline().lower():
                assert process.poll() is None

            async def work(connection: Connection, _: Heard) -> None:
                assert words((await connection.call(calling("echo", message="hé"))).content) == "Echo: hé"

            with_server(work, tmp_path, McpServerConfig(url=f"http://127.0.0.1:{port}/mcp"))
        finally:
            process.kill()
